//! koord
