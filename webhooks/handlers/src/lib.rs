//! koord-webhooks
