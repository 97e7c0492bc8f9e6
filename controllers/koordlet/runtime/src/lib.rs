//! koord-koordlet-runtime
