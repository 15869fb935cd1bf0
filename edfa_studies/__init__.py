"""Studies: many measurements, on one machine or a cluster; and the paper's tables and figures."""
