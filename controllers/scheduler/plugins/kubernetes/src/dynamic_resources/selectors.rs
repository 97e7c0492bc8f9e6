//! Selectors of devices: compiled once, with what they say about the devices of every slice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use koord_core::key::ObjectKey;
use koord_resource::schema::cel::{Attribute, Device, DeviceSelector};
use koord_scheduler_framework::dynamic::{DeviceAttribute, ResourceSlice};
use parking_lot::Mutex;

use super::pools::Part;

/// What a selector says about each device of a slice, in their order; or why that cannot be known.
pub(super) type Answers = Arc<[Result<bool, Arc<str>>]>;

/// The selectors that were used lately.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    by_text: BTreeMap<Box<str>, Known>,
    uses: u64,
}

#[derive(Debug)]
struct Known {
    /// The selector; or why there is none.
    compiled: Result<DeviceSelector, Arc<str>>,
    answers: BTreeMap<ObjectKey, (Weak<Part>, Answers)>,
    /// When it was used last.
    used: u64,
}

impl Selectors {
    /// Selectors that are kept; a cluster has few kinds of devices.
    const SELECTORS_MAX: usize = 64;
    /// How long one may take for the devices of a slice, which are 128 at most. It is not asked again after that.
    const LIMIT: Duration = Duration::from_secs(1);
    /// Answers after which those are dropped whose slices are gone.
    const ANSWERS_SWEPT: usize = 1024;

    /// Whether the text is a selector; its mistake if not.
    pub(super) fn check(&self, text: &str) -> Result<(), Arc<str>> {
        self.0.lock().get(text).compiled.as_ref().map(drop).map_err(Arc::clone)
    }

    /// What a selector says about the devices of a slice.
    pub(super) fn answers(&self, text: &str, part: &Arc<Part>, slice: &ResourceSlice) -> Result<Answers, Arc<str>> {
        let mut used = self.0.lock();
        let known = used.get(text);
        let selector = known.compiled.as_ref().map_err(Arc::clone)?;
        if let Some((of, answers)) = known.answers.get(&part.key)
            && Weak::ptr_eq(of, &Arc::downgrade(part))
        {
            return Ok(Arc::clone(answers));
        }
        let devices = slice.spec.devices.iter().map(|device| Device {
            driver: slice.spec.driver.to_string(),
            attributes: device.attributes.iter().map(|(name, value)| (name.to_string(), attribute(value))).collect(),
            capacity: device.capacity.iter().map(|(name, has)| (name.to_string(), has.value.to_string())).collect(),
        });
        let Ok(answers) = selector.select(devices.collect(), Self::LIMIT) else {
            let overrun: Arc<str> = "the evaluation took too long".into();
            known.compiled = Err(Arc::clone(&overrun));
            return Err(overrun);
        };
        let answers: Answers = answers.into_iter().map(|answer| answer.map_err(Arc::from)).collect();
        if known.answers.len() % Self::ANSWERS_SWEPT == Self::ANSWERS_SWEPT - 1 {
            known.answers.retain(|_, (of, _)| of.strong_count() > 0);
        }
        known.answers.insert(part.key.clone(), (Arc::downgrade(part), Arc::clone(&answers)));
        Ok(answers)
    }
}

impl Used {
    fn get(&mut self, text: &str) -> &mut Known {
        self.uses += 1;
        if !self.by_text.contains_key(text) && self.by_text.len() >= Selectors::SELECTORS_MAX {
            let oldest = self.by_text.iter().min_by_key(|(_, known)| known.used).map(|(text, _)| text.clone());
            oldest.map(|text| self.by_text.remove(&text));
        }
        let known = self.by_text.entry(text.into()).or_insert_with(|| Known {
            compiled: DeviceSelector::compile(text).map_err(Arc::from),
            answers: BTreeMap::new(),
            used: 0,
        });
        known.used = self.uses;
        known
    }
}

fn attribute(value: &DeviceAttribute) -> Attribute {
    match value {
        DeviceAttribute { int: Some(value), .. } => Attribute::Int(*value),
        DeviceAttribute { bool: Some(value), .. } => Attribute::Bool(*value),
        DeviceAttribute { string: Some(value), .. } => Attribute::Text(value.to_string()),
        DeviceAttribute { version: Some(value), .. } => Attribute::Version(value.to_string()),
        DeviceAttribute { int: None, bool: None, string: None, version: None } => Attribute::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(model: &str) -> ResourceSlice {
        let device = json!({"name": "d", "attributes": {"model": {"string": model}}});
        serde_json::from_value(json!({"spec": {"driver": "gpu", "devices": [device, {"name": "e"}]}})).unwrap()
    }

    fn answers(selectors: &Selectors, text: &str, part: &Arc<Part>, slice: &ResourceSlice) -> Vec<String> {
        let answers = selectors.answers(text, part, slice).unwrap();
        answers.iter().map(|answer| answer.as_ref().map_or_else(ToString::to_string, ToString::to_string)).collect()
    }

    #[test]
    fn answers_hold_for_a_slice_until_it_changes() {
        let selectors = Selectors::default();
        let text = "device.attributes['gpu'].model == 'A'";
        let part = Arc::new(Part::default());
        assert_eq!(answers(&selectors, text, &part, &slice("A")), ["true", "no such key: model"]);
        assert_eq!(answers(&selectors, text, &part, &slice("B"))[0], "true", "the same part is not looked at again");
        assert_eq!(answers(&selectors, text, &Arc::new(Part::default()), &slice("B"))[0], "false");
    }

    #[test]
    fn those_that_were_not_used_for_long_are_forgotten() {
        let selectors = Selectors::default();
        for number in 0..2 * Selectors::SELECTORS_MAX {
            assert!(selectors.check("true").is_ok() && selectors.check(&format!("{number} == 1")).is_ok());
        }
        let used = selectors.0.lock();
        assert!(used.by_text.len() == Selectors::SELECTORS_MAX && used.by_text.contains_key("true"));
        drop(used);
        assert!(selectors.check("device.").unwrap_err().starts_with("compilation failed: "));
    }
}
