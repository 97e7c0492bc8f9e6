//! koord-koordlet-reports
