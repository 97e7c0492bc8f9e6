//! Devices beside GPUs: shares of cards and FPGAs, and the virtual functions of cards.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json::{Amounts, amounts, list, number, text};

/// What a device has of each of its resources, in percent.
const WHOLE: i64 = 100;

/// What something has of devices beside GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Percents of each device, by its type and minor.
    pub shares: BTreeMap<(String, u32), Amounts>,
    /// How often each virtual function is given out, by its address on the bus.
    pub functions: BTreeMap<String, usize>,
}

impl Devices {
    /// What an allocation gives, by the JSON of its annotation.
    pub(crate) fn of(allocated: &Value) -> Self {
        let mut devices = Self::default();
        for (kind, given) in allocated.as_object().into_iter().flatten().filter(|(kind, _)| *kind != "gpu") {
            for device in list(given) {
                let Some(minor) = number(&device["minor"]) else { continue };
                devices.shares.insert((kind.clone(), minor), amounts(&device["resources"]));
                for function in list(&device["extension"]["vfs"]).iter().filter_map(|one| text(&one["busID"])) {
                    *devices.functions.entry(function).or_default() += 1;
                }
            }
        }
        devices
    }

    /// Both together, amounts and counts by these rules.
    pub(crate) fn joined(mut self, other: Self, amount: fn(i64, i64) -> i64, count: fn(usize, usize) -> usize) -> Self {
        for (device, amounts) in other.shares {
            let all = self.shares.entry(device).or_default();
            for (name, value) in amounts {
                let entry = all.entry(name).or_default();
                *entry = amount(*entry, value);
            }
        }
        for (function, times) in other.functions {
            let entry = self.functions.entry(function).or_default();
            *entry = count(*entry, times);
        }
        self
    }

    /// What is given out twice, and devices of which more than all is given out.
    pub(crate) fn overallocations(&self) -> Vec<String> {
        let mut overallocations = Vec::new();
        for ((kind, minor), amounts) in &self.shares {
            let over = amounts.iter().find(|(_, amount)| **amount > WHOLE);
            overallocations.extend(over.map(|(name, amount)| format!("{amount} of {WHOLE} {name} of {kind} {minor}")));
        }
        let twice: Vec<_> =
            self.functions.iter().filter(|(_, times)| **times > 1).map(|(function, _)| function).collect();
        if !twice.is_empty() {
            overallocations.push(format!("virtual functions {twice:?} twice"));
        }
        overallocations
    }
}
