//! Whose controllers run: what plugins write beside attempts.

use koord_runtime::selected::selects;

/// A list of plugins: `*` for all, `NAME` for one, `-NAME` for all but one. Of a plugin the first word about it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controllers(Vec<String>);

impl Default for Controllers {
    fn default() -> Self {
        Self(vec!["*".to_owned()])
    }
}

impl Controllers {
    /// The controllers of this list.
    pub fn of(list: impl IntoIterator<Item = String>) -> Self {
        Self(list.into_iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect())
    }

    /// Whether those of a plugin run.
    pub fn runs(&self, plugin: &str) -> bool {
        selects(&self.0, plugin)
    }

    /// The plugins that are named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|word| *word != "*").map(|word| word.strip_prefix('-').unwrap_or(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_run_but_those_that_are_named_or_none_but_those() {
        let runs = |list: &str| {
            let controllers = Controllers::of(list.split(',').map(str::to_owned));
            ["ElasticQuota", "Reservation"].map(|plugin| controllers.runs(plugin))
        };
        assert_eq!((runs("*"), runs("")), ([true, true], [false, false]));
        assert_eq!((runs("*,-ElasticQuota"), runs("-ElasticQuota,*")), ([false, true], [false, true]));
        assert_eq!((runs("Reservation"), runs("Reservation, -ElasticQuota")), ([false, true], [false, true]));
        assert!(Controllers::default().runs("Coscheduling"));
        let named = Controllers::of(["*", "-A", "B"].map(str::to_owned));
        assert_eq!(named.names().collect::<Vec<_>>(), ["A", "B"]);
    }
}
