//! koord-webhook
