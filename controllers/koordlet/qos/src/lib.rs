//! koord-koordlet-qos
