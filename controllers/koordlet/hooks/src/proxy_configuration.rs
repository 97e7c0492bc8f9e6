//! The configuration by which the runtime proxy knows the agent.

use serde::Serialize;

use crate::{rules::Options, stage::Stage};

/// The name of the file in the folder of the proxy's configuration.
pub const PROXY_CONFIGURATION_FILE: &str = "koordlet.json";

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Configuration<'a> {
    remote_endpoint: &'a str,
    failure_policy: &'a str,
    runtime_hooks: Vec<&'a str>,
}

/// The configuration: the socket of the agent as the proxy sees it, the failure policy, and the stages at which some hook is called, by name.
///
/// QUIRK: stages that are disabled are named too, as the original does (`the_proxy_calls_every_stage_that_has_hooks`). They are answered without changes.
pub fn proxy_configuration(options: &Options, endpoint: &str) -> String {
    let mut stages: Vec<&str> = options.hooks.stages().iter().map(Stage::as_str).collect();
    stages.sort_unstable();
    let configuration = Configuration {
        remote_endpoint: endpoint,
        failure_policy: options.failure_policy.as_str(),
        runtime_hooks: stages,
    };
    let mut text = Vec::new();
    let mut writer =
        serde_json::Serializer::with_formatter(&mut text, serde_json::ser::PrettyFormatter::with_indent(b"\t"));
    // Texts can always be written.
    let _ = configuration.serialize(&mut writer);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hook::{Hook, Hooks},
        rules::FailurePolicy,
        stage::Stages,
    };

    #[test]
    fn the_proxy_calls_every_stage_that_has_hooks() {
        let options = Options {
            hooks: [Hook::GroupIdentity, Hook::CpuSetAllocator, Hook::GpuEnvInject].into_iter().collect::<Hooks>(),
            disabled_stages: Stages::parse("PreRunPodSandbox,PreStartContainer").unwrap(),
            failure_policy: FailurePolicy::Fail,
            ..Options::default()
        };
        let expected = "{\n\t\"remote-endpoint\": \"/run/other.sock\",\n\t\"failure-policy\": \"Fail\",\n\t\"runtime-hooks\": [\n\t\t\
            \"PreCreateContainer\",\n\t\t\"PreRunPodSandbox\",\n\t\t\"PreUpdateContainerResources\"\n\t]\n}";
        assert_eq!(proxy_configuration(&options, "/run/other.sock"), expected);
    }
}
