//! The flags and environment of koord-manager in a Deployment.

use koord_manager_assembly::{Options, webhook_defaults};
use koord_webhook_server::Environment;
use serde_json::Value;

/// Something that koord-manager would refuse at its start.
pub(crate) struct Mistake {
    /// Where, such as `spec.template.spec.containers[0].args[2]`.
    pub(crate) path: String,
    pub(crate) message: String,
    /// What would be right, where that is known.
    pub(crate) suggestion: Option<String>,
}

/// Every flag by itself, so that each mistake is found at its place, and then all of them together.
pub(crate) fn mistakes(deployment: &Value) -> Vec<Mistake> {
    let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let mut mistakes = Vec::new();
    for (index, container) in containers.into_iter().flatten().enumerate() {
        let at = format!("spec.template.spec.containers[{index}]");
        let words = words(container);
        if words.first().is_some_and(|(_, word)| word.rsplit('/').next() == Some("koord-manager")) {
            flags(&at, &words[1..], &mut mistakes);
            environment(&at, container, &mut mistakes);
        }
    }
    mistakes
}

/// The words of the command line with their places. Where the image's entry point is used, the arguments are all there is.
fn words(container: &Value) -> Vec<(String, String)> {
    let list = |field: &'static str| {
        let words = container[field].as_array().into_iter().flatten().enumerate();
        words.filter_map(move |(index, word)| Some((format!("{field}[{index}]"), word.as_str()?.to_owned())))
    };
    list("command").chain(list("args")).collect()
}

fn flags(at: &str, words: &[(String, String)], mistakes: &mut Vec<Mistake>) {
    let before = mistakes.len();
    let mut rest = words;
    while let Some(((place, flag), after)) = rest.split_first() {
        let value = after.first().filter(|(_, value)| !flag.contains('=') && !value.starts_with('-'));
        rest = if value.is_some() { &after[1..] } else { after };
        let line: Vec<String> = std::iter::once(flag).chain(value.map(|(_, value)| value)).cloned().collect();
        // `$(NAME)` is only known where the container runs.
        if line.iter().any(|word| word.contains("$(")) {
            continue;
        }
        if let Some((message, suggestion)) = refusal(line) {
            mistakes.push(Mistake { path: format!("{at}.{place}"), message, suggestion });
        }
    }
    if mistakes.len() == before {
        let line = words.iter().map(|(_, word)| word).filter(|word| !word.contains("$(")).cloned();
        if let Some((message, suggestion)) = refusal(line.collect()) {
            mistakes.push(Mistake { path: format!("{at}.args"), message, suggestion });
        }
    }
}

/// Why these arguments are refused, and what is meant.
fn refusal(arguments: Vec<String>) -> Option<(String, Option<String>)> {
    let line = std::iter::once("koord-manager".to_owned()).chain(arguments);
    let error = Options::from_arguments(line).and_then(Options::check).err()?;
    let text = error.to_string();
    let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(str::to_owned);
    Some((message, tip))
}

fn environment(at: &str, container: &Value, mistakes: &mut Vec<Mistake>) {
    let variables = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    let written = |name: &str| {
        let variable = variables.iter().find(|variable| variable["name"] == name)?;
        variable["value"].as_str().filter(|value| !value.contains("$(")).map(str::to_owned)
    };
    if let Err(error) = Environment::of(webhook_defaults(), written) {
        let message = error.to_string();
        let index = variables.iter().position(|variable| {
            variable["name"].as_str().is_some_and(|name| message.contains(&format!("variable {name}=")))
        });
        let path = index.map_or_else(|| format!("{at}.env"), |index| format!("{at}.env[{index}]"));
        mistakes.push(Mistake { path, message, suggestion: None });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(container: &Value) -> Vec<(String, String)> {
        let deployment = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        let short = |path: &str| path.trim_start_matches("spec.template.spec.containers[0].").to_owned();
        mistakes(&deployment).into_iter().map(|mistake| (short(&mistake.path), mistake.message)).collect()
    }

    #[test]
    fn every_wrong_flag_is_found_at_its_place() {
        let found = found(&json!({
            "command": ["/koord-manager"],
            "args": [
                "--v=4", "--slo-config-nam=x", "--feature-gates", "MultiQuotasTree=true", "--metrics-addr=8080",
                "--rest-config-qps=many", "--namespace=$(POD_NAMESPACE)",
            ],
            "env": [{"name": "A", "value": "b"}, {"name": "WEBHOOK_PORT", "value": "70000"}],
        }));
        let places: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(places, ["args[1]", "args[2]", "args[4]", "args[5]", "env[1]"], "{found:?}");
        assert!(
            found[0].1.contains("--slo-config-nam") && found[1].1.contains("did you mean MultiQuotaTree?"),
            "{found:?}"
        );
        assert!(found[2].1.contains("\"8080\" is no address") && found[3].1.contains("'many'"), "{found:?}");
        assert!(found[4].1.contains("expected a port from 0 to 65535"), "{found:?}");
    }

    #[test]
    fn other_programs_and_right_flags_are_left_alone() {
        assert_eq!(found(&json!({"command": ["/koordlet"], "args": ["--no-such-flag"]})), []);
        assert_eq!(
            found(&json!({"command": ["/koord-manager", "-v", "4"], "args": ["--feature-gates=AllAlpha=true"]})),
            []
        );
    }
}
