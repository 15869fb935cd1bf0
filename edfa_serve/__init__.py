"""The service: the applicant's page, the operator's view, the JSON API and letters."""
