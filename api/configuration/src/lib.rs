//! Configuration files of components as declared types: what a program reads from `--config FILE`.
//!
//! A type is the one source: its JSON Schema (by `schemars`) is what a document is checked against, what editors
//! complete by, and what is documented. Decoding is strict: unknown fields, wrong types, and values, lengths and texts that the
//! schema does not allow are [`Problem`]s with the path of the field and, where it is known, what would be right. What a schema
//! cannot say is [`Configuration::check`].
//!
//! ```
//! use koord_configuration::{Configuration, Source};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// The configuration of a cleaner.
//! #[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
//! struct CleanerConfiguration {
//!     /// How many objects are deleted at once. Default 4.
//!     #[schemars(range(min = 1, max = 20))]
//!     workers: Option<u32>,
//! }
//!
//! impl Configuration for CleanerConfiguration {
//!     const API_VERSION: &'static str = "cleaner.example.com/v1";
//!     const KIND: &'static str = "CleanerConfiguration";
//!
//!     fn complete(&mut self) {
//!         self.workers.get_or_insert(4);
//!     }
//! }
//!
//! let text = "apiVersion: cleaner.example.com/v1\nkind: CleanerConfiguration\n";
//! let cleaner: CleanerConfiguration = Source::new("cleaner.yaml", text).read().unwrap();
//! assert_eq!(cleaner.workers, Some(4));
//!
//! let text = format!("{text}wrokers: 3\n");
//! let error = Source::new("cleaner.yaml", &text).read::<CleanerConfiguration>().unwrap_err();
//! assert_eq!(error.to_string(), "cleaner.yaml:3: wrokers: unknown field; did you mean workers?");
//! ```
//!
//! The crate opens no files: a text is passed in, or a document as a JSON value. Read first: [`Configuration`], [`Source`],
//! [`Problem`].
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bounded;
mod client_connection;
mod configuration;
mod decode;
mod effective;
mod leader_election;
mod problem;
mod published;
mod source;
mod strict;

pub use bounded::{DurationText, Percent, QuantityText, Weight};
pub use client_connection::ClientConnection;
pub use configuration::{Configuration, document, effective, published_schema, read, without_document};
pub use decode::{decode, schema, typed};
pub use effective::{Effective, Origin};
pub use leader_election::LeaderElection;
pub use problem::{Problem, Problems, Step, path_text};
pub use published::published;
pub use source::{ConfigurationError, Source};
pub use strict::{check_schema, nearest};
