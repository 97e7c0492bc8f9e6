//! Configuration files of components as declared types: what a program reads from `--config FILE`.
//!
//! A type is the one source: `derive(Configuration)` makes its defaults, its JSON Schema (by which a document is checked, by which editors
//! complete, and which is documented), and the warning about fields without an effect. Decoding is strict: unknown fields, wrong types, and
//! values, lengths and texts that the schema does not allow are [`Problem`]s with the path of the field and, where it is known, what would be
//! right. What a schema cannot say is a function that the type names.
//!
//! ```
//! use koord_configuration::{Configuration, Source};
//! use serde::{Deserialize, Serialize};
//!
//! /// The configuration of a cleaner.
//! #[derive(Debug, Serialize, Deserialize, Configuration)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
//! #[koord(group = "cleaner.example.com", version = "v1")]
//! struct CleanerConfiguration {
//!     /// How many objects are deleted at once.
//!     #[koord(default = 4, minimum = 1, maximum = 20)]
//!     workers: u32,
//! }
//!
//! let text = "apiVersion: cleaner.example.com/v1\nkind: CleanerConfiguration\n";
//! let cleaner: CleanerConfiguration = Source::new("cleaner.yaml", text).read().unwrap();
//! assert_eq!(cleaner.workers, 4);
//!
//! let text = format!("{text}wrokers: 3\n");
//! let error = Source::new("cleaner.yaml", &text).read::<CleanerConfiguration>().unwrap_err();
//! assert_eq!(error.to_string(), "cleaner.yaml:3: wrokers: unknown field; did you mean workers?");
//! ```
//!
//! The crate opens no files: a text is passed in, or a document as a JSON value. Read first: [`Configuration`], [`Setting`], [`Source`],
//! [`Problem`].
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bounded;
mod client_connection;
mod configuration;
#[doc(hidden)]
pub mod declare;
mod decode;
mod effective;
mod leader_election;
mod problem;
mod published;
mod setting;
mod source;
mod strict;

// The code that the derive makes names the crate by its path.
extern crate self as koord_configuration;

pub use bounded::{Percent, Weight};
pub use client_connection::ClientConnection;
pub use configuration::{Configuration, document, effective, published_schema, read, without_document};
pub use decode::{decode, schema, typed};
pub use effective::{Effective, Origin};
pub use koord_macros::Configuration;
pub use leader_election::LeaderElection;
pub use problem::{Problem, Problems, Step, path_text};
pub use published::published;
pub use setting::Setting;
pub use source::{ConfigurationError, Source};
pub use strict::{check_schema, nearest, unknown_fields};

#[doc(hidden)]
pub use {schemars, serde_json};
