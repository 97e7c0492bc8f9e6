//! How far each amount of a quota could be changed, and what refuses the step beyond.
//!
//! The rules are not written again here: the webhook's handler is asked about one change after the other, and the
//! furthest that it admits is found by halving.

use koord_manager_assembly::reviewer::{QUOTAS, Reviewer};
use koord_program::{screen::Screen, table};
use koord_resource::{
    Quantity,
    admission::{Denial, Operation},
    quantity::Format,
};
use serde_json::{Value, json};

use super::{
    refusal_json,
    tree::{Quota, Tree},
};

/// What could become of one thing.
struct Bound {
    change: String,
    /// How far it may go; none where the change is admitted or refused as a whole.
    limit: Option<Quantity>,
    /// What refuses the next step.
    refusal: Option<Denial>,
}

/// What could become of a quota.
pub(super) struct Bounds(Vec<Bound>);

/// A change that is admitted whenever the quota, as it is, breaks no rule.
fn same(reviewer: &Reviewer, quota: &Value) -> Result<(), Denial> {
    // The handler looks only at requests that change something, so the old object differs by a resource.
    let mut old = quota.clone();
    old["spec"]["max"]["koordinator.sh/none"] = "1".into();
    ask(reviewer, quota, &old)
}

/// The rule that a quota breaks as it is stored.
pub fn contradiction(tree: &Tree, quota: &Quota) -> Option<Denial> {
    same(&tree.reviewer, &quota.object).err()
}

fn ask(reviewer: &Reviewer, object: &Value, old: &Value) -> Result<(), Denial> {
    match reviewer.objections(QUOTAS, Operation::Update, Some(object), Some(old)).next() {
        Some(denial) => Err(denial),
        None => Ok(()),
    }
}

impl Bounds {
    /// The bounds of a quota; the refusal that its present state already meets, where it does.
    pub(super) fn of(tree: &Tree, quota: &Quota) -> Result<Self, Denial> {
        let (reviewer, stored) = (&tree.reviewer, &quota.object);
        same(reviewer, stored)?;
        let spec = &quota.typed.spec;
        let mut bounds = Vec::new();
        for (resource, min) in &spec.min {
            let with = |amount: &Quantity| set(stored, "min", resource, amount);
            let scale = Scale::of(resource, [min, spec.max.amount(resource)]);
            let top = spec.max.amount(resource);
            bounds.push(furthest(reviewer, stored, "raise", ("min", resource), (min, top), scale, with));
            bounds.push(furthest(reviewer, stored, "lower", ("min", resource), (min, &Quantity::ZERO), scale, with));
        }
        for (resource, max) in &spec.max {
            let with = |amount: &Quantity| set(stored, "max", resource, amount);
            let scale = Scale::of(resource, [max, spec.min.amount(resource)]);
            bounds.push(furthest(reviewer, stored, "lower", ("max", resource), (max, &Quantity::ZERO), scale, with));
        }
        bounds.push(whole(reviewer, stored, "bound another resource in max", |object| {
            object["spec"]["max"]["koordinator.sh/another"] = "1".into();
        }));
        let flipped = if quota.place.is_parent { "false" } else { "true" };
        bounds.push(whole(reviewer, stored, &format!("is-parent={flipped}"), |object| {
            object["metadata"]["labels"][koord_types::quota::IS_PARENT.name()] = flipped.into();
        }));
        let refusal = reviewer.objections(QUOTAS, Operation::Delete, None, Some(stored)).next();
        bounds.push(Bound { change: "delete".to_owned(), limit: None, refusal });
        Ok(Self(bounds))
    }

    pub(super) fn to_text(&self, screen: Screen) -> String {
        let mut rows = vec![["change", "as far as", "then"].map(str::to_owned).to_vec()];
        for Bound { change, limit, refusal } in &self.0 {
            let (far, then) = match (limit, refusal) {
                (Some(limit), _) => (limit.to_string(), refusal.as_ref().map(|denial| denial.message.clone())),
                (None, Some(denial)) => ("refused".to_owned(), Some(denial.message.clone())),
                (None, None) => ("admitted".to_owned(), None),
            };
            rows.push(vec![change.clone(), far, then.unwrap_or_default()]);
        }
        table::lines(&rows, screen)
    }

    pub(super) fn to_json(&self) -> Value {
        let each = self.0.iter().map(|Bound { change, limit, refusal }| {
            let mut json = json!({"change": change});
            if let Some(limit) = limit {
                json["limit"] = limit.to_string().into();
            } else {
                json["admitted"] = refusal.is_none().into();
            }
            if let Some(denial) = refusal {
                json["refusal"] = refusal_json(denial);
            }
            json
        });
        each.collect()
    }
}

fn set(stored: &Value, bound: &str, resource: &str, amount: &Quantity) -> Value {
    let mut object = stored.clone();
    object["spec"][bound][resource] = amount.to_string().into();
    object
}

/// A change that is made or not.
fn whole(reviewer: &Reviewer, stored: &Value, change: &str, edit: impl Fn(&mut Value)) -> Bound {
    let mut object = stored.clone();
    edit(&mut object);
    Bound { change: change.to_owned(), limit: None, refusal: ask(reviewer, &object, stored).err() }
}

/// In which steps an amount is changed.
#[derive(Clone, Copy)]
struct Scale {
    milli: bool,
    format: Format,
}

impl Scale {
    fn of(resource: &str, amounts: [&Quantity; 2]) -> Self {
        let milli = resource == "cpu" || amounts.iter().any(|amount| amount.as_i64().is_none());
        Self { milli, format: amounts[0].format() }
    }

    fn steps(self, amount: &Quantity) -> i64 {
        if self.milli { amount.milli_value() } else { amount.value() }
    }

    fn amount(self, steps: i64) -> Quantity {
        if self.milli { Quantity::from_milli(steps, self.format) } else { Quantity::new(steps, self.format) }
    }
}

/// How far an amount can go from where it is towards an end, the end included.
fn furthest(
    reviewer: &Reviewer,
    stored: &Value,
    direction: &str,
    (bound, resource): (&str, &str),
    (from, to): (&Quantity, &Quantity),
    scale: Scale,
    with: impl Fn(&Quantity) -> Value,
) -> Bound {
    // A value that is written otherwise and means the same is no change, so that the present one counts as admitted.
    let check = |steps: i64| ask(reviewer, &with(&scale.amount(steps)), stored);
    let (mut good, end) = (scale.steps(from), scale.steps(to));
    let beyond = if direction == "raise" { end.max(good).saturating_add(1) } else { end.min(good) };
    let mut refusal = check(beyond).err();
    if refusal.is_none() {
        good = beyond;
    }
    let mut bad = beyond;
    while good.abs_diff(bad) > 1 {
        // The middle, without overflow whatever users wrote.
        let middle = good.midpoint(bad);
        match check(middle) {
            Ok(()) => good = middle,
            Err(denial) => (bad, refusal) = (middle, Some(denial)),
        }
    }
    Bound { change: format!("{direction} {bound}.{resource}"), limit: Some(scale.amount(good)), refusal }
}
