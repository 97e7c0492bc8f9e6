//! koord-runtime
