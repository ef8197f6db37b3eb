//! Nothing: the cases are in `tests`.
