//! Tests of a whole balancer on pretended nodes; see `tests/`.
