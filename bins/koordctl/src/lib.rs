//! koordctl
