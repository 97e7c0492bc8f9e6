//! koord-koordlet-hooks
