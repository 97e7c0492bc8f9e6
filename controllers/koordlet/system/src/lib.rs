//! koord-koordlet-system
