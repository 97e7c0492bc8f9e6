//! `image`: the image of a program.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) enum PullPolicy {
    Always,
    #[expect(dead_code, reason = "a word of the schema")]
    IfNotPresent,
    #[expect(dead_code, reason = "a word of the schema")]
    Never,
}

/// The values about the image of one program, which have its name as their default.
macro_rules! image {
    ($name:ident, $repository:literal) => {
        #[derive(Debug, Serialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, rename_all = "camelCase")]
        pub(super) struct $name {
            /// Name of the image within the registry.
            repository: String,
            /// Tag of the image. When it is empty, or a release of the original as in its values files: the chart's version with the ending -rust, which
            /// the original never used.
            tag: String,
            /// Added. When the image is pulled.
            pull_policy: PullPolicy,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { repository: $repository.to_owned(), tag: String::new(), pull_policy: PullPolicy::Always }
            }
        }
    };
}

image!(ManagerImage, "koordinator-sh/koord-manager");
image!(SchedulerImage, "koordinator-sh/koord-scheduler");
image!(DeschedulerImage, "koordinator-sh/koord-descheduler");
image!(KoordletImage, "koordinator-sh/koordlet");
