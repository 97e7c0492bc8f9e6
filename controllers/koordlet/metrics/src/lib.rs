//! koord-koordlet-metrics
