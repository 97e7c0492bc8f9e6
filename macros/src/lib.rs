//! koord-macros
