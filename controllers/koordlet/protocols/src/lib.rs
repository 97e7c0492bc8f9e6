//! koord-koordlet-protocols
