//! koord-koordlet-testing
