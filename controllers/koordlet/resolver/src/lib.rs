//! koord-koordlet-resolver
