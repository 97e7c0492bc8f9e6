//! koord-koordlet-devices
