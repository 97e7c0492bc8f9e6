//! koord-manager-controllers
