//! What comes true in a step.

use anyhow::Result;
use koord_resource::Quantity;
use koord_types::resource_names::BATCH_CPU;
use kube::Client;
use serde::Deserialize;

use super::{
    object::{Object, Place},
    show::events,
};

/// Something that comes true by itself after what was done.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// An amount becomes larger than it was before the step, by this many percent of what it was.
    Rises(Change),
    /// An amount becomes smaller.
    Falls(Change),
    /// An amount is less than this one.
    Below(Bound),
    /// Batch pods are offered such a share of a node's CPU.
    BatchCpu(Share),
    /// A field has this value.
    Is(Equal),
    /// A field is not there.
    Absent(Place),
    /// A field is there.
    Present(Place),
    /// A field is what it was before the step.
    Kept(Place),
    /// An event says this about the object.
    Event { of: Object, reason: String },
}

/// A change of an amount.
#[derive(Clone, Debug, Deserialize)]
pub struct Change {
    #[serde(flatten)]
    place: Place,
    by_percent: i64,
}

/// A share of a node's CPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    node: String,
    percent_min: i64,
    percent_max: i64,
}

impl Share {
    async fn look(&self, client: &Client) -> Result<Result<String, String>> {
        let node = Object::new("node", "", &self.node)?;
        let object = node.get(client).await?.unwrap_or_default();
        let amount = |of: &str| object["status"]["allocatable"][of].as_str()?.parse::<Quantity>().ok();
        // batch-cpu is counted in thousandths of a core already
        let milli = amount("cpu").map(|cpu| cpu.milli_value()).filter(|milli| *milli > 0);
        let percent = amount(BATCH_CPU).zip(milli).map(|(batch, milli)| batch.value().saturating_mul(100) / milli);
        let says = match percent {
            Some(percent) => format!("{node} offers {percent} % of its CPU to batch pods"),
            None => format!("{node} offers nothing to batch pods"),
        };
        let holds = percent.is_some_and(|percent| (self.percent_min..=self.percent_max).contains(&percent));
        Ok(if holds { Ok(says) } else { Err(says) })
    }
}

/// An amount, and the one that it is to be less than.
#[derive(Clone, Debug, Deserialize)]
pub struct Bound {
    #[serde(flatten)]
    place: Place,
    amount: String,
}

/// A field and its value.
#[derive(Clone, Debug, Deserialize)]
pub struct Equal {
    #[serde(flatten)]
    place: Place,
    value: String,
}

impl Condition {
    fn place(&self) -> Option<&Place> {
        match self {
            Condition::Rises(change) | Condition::Falls(change) => Some(&change.place),
            Condition::Below(bound) => Some(&bound.place),
            Condition::Is(equal) => Some(&equal.place),
            Condition::Absent(place) | Condition::Present(place) | Condition::Kept(place) => Some(place),
            Condition::BatchCpu(_) | Condition::Event { .. } => None,
        }
    }

    /// What stands where it looks, before the step.
    pub async fn before(&self, client: &Client) -> Result<Option<String>> {
        match self.place() {
            Some(place) => place.read(client).await,
            None => Ok(None),
        }
    }

    /// Whether it has come true, and in what words; else what there is instead.
    pub async fn look(&self, client: &Client, before: Option<&str>) -> Result<Result<String, String>> {
        Ok(match self {
            Condition::BatchCpu(share) => share.look(client).await?,
            Condition::Event { of, reason } => look_for_event(client, of, reason).await?,
            Condition::Rises(change) => {
                let seen = Seen::at(&change.place, client, before).await?;
                let rises = seen.change_percent().is_some_and(|percent| percent >= change.by_percent);
                seen.judge(rises, |name, of, was, is| format!("{name} of {of} rises from {was} to {is}"))
            }
            Condition::Falls(change) => {
                let seen = Seen::at(&change.place, client, before).await?;
                let falls = seen.change_percent().is_some_and(|percent| percent <= -change.by_percent);
                seen.judge(falls, |name, of, was, is| format!("{name} of {of} falls from {was} to {is}"))
            }
            Condition::Below(bound) => {
                let seen = Seen::at(&bound.place, client, before).await?;
                let amount = |text: &str| text.parse::<Quantity>().ok();
                let is_below = seen
                    .is
                    .as_deref()
                    .and_then(amount)
                    .zip(amount(&bound.amount))
                    .is_some_and(|(is, bound)| is < bound);
                seen.judge(is_below, |name, of, _, is| format!("{name} of {of} is {is}, less than {}", bound.amount))
            }
            Condition::Is(equal) => {
                let seen = Seen::at(&equal.place, client, before).await?;
                let equal = seen.is.as_deref() == Some(equal.value.as_str());
                seen.judge(equal, |name, of, _, is| format!("{name} of {of} is {is}"))
            }
            Condition::Absent(place) => {
                let seen = Seen::at(place, client, before).await?;
                seen.judge(seen.is.is_none(), |name, of, _, _| format!("{of} has no {name}"))
            }
            Condition::Present(place) => {
                let seen = Seen::at(place, client, before).await?;
                seen.judge(seen.is.is_some(), |name, of, _, is| format!("{of} has {name}: {is}"))
            }
            Condition::Kept(place) => {
                let seen = Seen::at(place, client, before).await?;
                seen.judge(seen.is.as_deref() == before, |name, of, _, is| format!("{name} of {of} stays {is}"))
            }
        })
    }
}

/// What stood in a field before the step, and what stands there now.
struct Seen<'a> {
    place: &'a Place,
    was: Option<&'a str>,
    is: Option<String>,
}

impl<'a> Seen<'a> {
    async fn at(place: &'a Place, client: &Client, was: Option<&'a str>) -> Result<Self> {
        Ok(Self { place, was, is: place.read(client).await? })
    }

    fn change_percent(&self) -> Option<i64> {
        change_percent(self.was, self.is.as_deref())
    }

    /// What is said about the field, the object, what was and what is.
    fn judge(&self, holds: bool, says: impl Fn(&str, &Object, &str, &str) -> String) -> Result<String, String> {
        let (name, of) = (self.place.field.last(), &self.place.of);
        let (was, is) = (self.was.unwrap_or("nothing"), self.is.as_deref().unwrap_or("nothing"));
        if holds { Ok(says(name, of, was, is)) } else { Err(format!("{name} of {of} was {was} and is {is}")) }
    }
}

async fn look_for_event(client: &Client, of: &Object, reason: &str) -> Result<Result<String, String>> {
    let events = events(client, of).await?;
    Ok(if events.iter().any(|event| event.reason == reason) {
        Ok(format!("an event {reason} on {of}"))
    } else {
        let reasons: Vec<&str> = events.iter().map(|event| event.reason.as_str()).collect();
        Err(format!("no event {reason} on {of}; there are: {}", reasons.join(", ")))
    })
}

/// By how many percent of what it was an amount has changed. What appears has risen without bounds.
fn change_percent(before: Option<&str>, now: Option<&str>) -> Option<i64> {
    let amount =
        |text: Option<&str>| text.unwrap_or("0").parse::<Quantity>().ok().map(|it| i128::from(it.milli_value()));
    let (before, now) = (amount(before)?, amount(now)?);
    let percent =
        (now - before).saturating_mul(100).checked_div(before).unwrap_or(now.signum().saturating_mul(i128::MAX));
    Some(i64::try_from(percent).unwrap_or(if percent > 0 { i64::MAX } else { i64::MIN }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_counted_in_percent_of_what_was() {
        for (before, now, percent) in [
            (Some("10k"), Some("5k"), -50),
            (Some("4Gi"), Some("6Gi"), 50),
            (Some("10"), Some("10"), 0),
            (Some("10"), None, -100),
            (None, Some("10"), i64::MAX),
            (Some("0"), Some("0"), 0),
        ] {
            assert_eq!(change_percent(before, now), Some(percent), "{before:?} {now:?}");
        }
        assert_eq!(change_percent(Some("much"), Some("1")), None);
    }
}
