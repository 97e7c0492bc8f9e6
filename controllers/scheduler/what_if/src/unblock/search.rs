//! The smallest change of an amount that helps, found by trying.

use anyhow::Result;

use super::{
    change::Change,
    on_node::{Refusal, joined},
    requests::Subject,
    trials::{Placement, Trials},
};

/// Steps of a search: more than there are binary digits in any amount of a pod, in thousandths of CPUs or in MiB.
const STEPS_MAX: u32 = 24;
/// The highest `maxSkew` that is tried above the one that there is.
const SKEW_MAX: i64 = 64;

/// The largest amount of a resource with which the pod is placed.
pub(super) async fn largest_request(
    trials: &mut Trials<'_>,
    subject: &Subject,
    resource: &str,
    now: i64,
) -> Result<Option<(Change, Placement)>> {
    let grain = if now > 1 << 20 { 1 << 20 } else { 1 };
    let (mut fits, mut fails, mut best) = (0, now / grain, None);
    for _ in 0..STEPS_MAX {
        // The first trial says whether less helps at all.
        let middle =
            if best.is_none() && fails == now / grain { (fails / 64).max(1) } else { i64::midpoint(fits, fails) };
        if middle <= fits || middle >= fails {
            break;
        }
        let Some(change) = subject.requesting(resource, now, middle * grain) else { break };
        match trials.placement(&[&change]).await? {
            Some(placement) => (fits, best) = (middle, Some((change, placement))),
            None if best.is_none() => break,
            None => fails = middle,
        }
    }
    Ok(best)
}

/// The most of its devices with which the pod is placed: all of its device resources are scaled alike.
pub(super) async fn fewer_devices(
    trials: &mut Trials<'_>,
    subject: &Subject,
    requests: &[(String, i64)],
) -> Result<Option<(Change, Placement)>> {
    let Some((lead, now)) = requests.iter().find(|(name, _)| !name.ends_with("memory")) else { return Ok(None) };
    for amount in fewer(lead, *now) {
        let scaled = requests.iter().filter_map(|(name, of_it)| {
            let target = i64::try_from(i128::from(*of_it) * i128::from(amount) / i128::from(*now)).unwrap_or(amount);
            subject.requesting(name, *of_it, target.max(1))
        });
        let Some(change) = scaled.reduce(|one, other| joined(one, &other)) else { return Ok(None) };
        let change = Change { kind: "devices", ..change };
        if let Some(placement) = trials.placement(&[&change]).await? {
            return Ok(Some((change, placement)));
        }
    }
    Ok(None)
}

/// Smaller amounts of a device resource that can be requested, the largest first: whole devices, then parts of one. What counts
/// devices has no parts.
fn fewer(resource: &str, now: i64) -> Vec<i64> {
    const AMOUNTS_MAX: usize = 12;
    let whole = if resource.starts_with("koordinator.sh/") && !resource.ends_with(".shared") { 100 } else { 1 };
    let parts = [75, 50, 25, 10, 5].into_iter().filter(|part| whole == 100 && *part < now);
    (1..=now / whole)
        .rev()
        .map(|devices| devices * whole)
        .filter(|amount| *amount < now)
        .take(AMOUNTS_MAX)
        .chain(parts)
        .collect()
}

/// The smallest `maxSkew` of a constraint with which the pod is placed.
pub(super) async fn wider_skew(
    trials: &mut Trials<'_>,
    subject: &Subject,
    index: usize,
) -> Result<Option<(Change, Placement)>> {
    let constraint = &subject.pod["spec"]["topologySpreadConstraints"][index];
    let Some(now) = constraint["maxSkew"].as_i64().filter(|_| constraint["whenUnsatisfiable"] == "DoNotSchedule")
    else {
        return Ok(None);
    };
    let key = constraint["topologyKey"].as_str().unwrap_or_default();
    let with = |skew: i64| {
        let text = format!("its maxSkew over {key} were {skew} (it is {now})");
        let path = format!("/spec/topologySpreadConstraints/{index}/maxSkew");
        Change::of("maxSkew", text, vec![subject.edit(&path, skew.into())]).like(key)
    };
    smallest(trials, now, now + SKEW_MAX, with).await
}

/// The lowest threshold of usage at which a node takes the pod.
pub(super) async fn higher_threshold(
    trials: &mut Trials<'_>,
    refusal: &Refusal<'_>,
    resource: &str,
) -> Result<Option<(Change, Placement)>> {
    smallest(trials, 0, 100, |percent| refusal.threshold(resource, percent)).await
}

/// The smallest number above `fails`, and at most `fits`, with which the pod is placed.
async fn smallest(
    trials: &mut Trials<'_>,
    mut fails: i64,
    mut fits: i64,
    with: impl Fn(i64) -> Change,
) -> Result<Option<(Change, Placement)>> {
    let change = with(fits);
    let Some(placement) = trials.placement(&[&change]).await? else { return Ok(None) };
    let mut best = (change, placement);
    while fits - fails > 1 {
        let middle = i64::midpoint(fails, fits);
        let change = with(middle);
        match trials.placement(&[&change]).await? {
            Some(placement) => (fits, best) = (middle, (change, placement)),
            None => fails = middle,
        }
    }
    Ok(Some(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_become_fewer_and_then_parts() {
        assert_eq!(fewer("koordinator.sh/gpu-core", 300), [200, 100, 75, 50, 25, 10, 5]);
        assert_eq!(fewer("koordinator.sh/gpu", 50), [25, 10, 5]);
        assert_eq!(fewer("nvidia.com/gpu", 4), [3, 2, 1]);
        assert_eq!(fewer("koordinator.sh/gpu.shared", 2), [1]);
    }
}
