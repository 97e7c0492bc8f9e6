//! koord-koordlet-framework
