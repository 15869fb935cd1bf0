"""The applicant's page, the operator's view and the JSON API: ``edfa serve``."""
