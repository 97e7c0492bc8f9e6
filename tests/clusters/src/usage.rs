//! What is taken of a node: by its pods, and by Reservations as far as their owners do not use them.

use std::collections::BTreeMap;

use crate::{
    devices::Devices,
    facts::{Amounts, Facts, Node, Parts, Pod, Reservation, sum},
};

/// What is taken of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Of what it offers.
    pub(crate) amounts: Amounts,
    /// Of each GPU.
    pub(crate) gpus: BTreeMap<u32, Amounts>,
    /// How often each CPU is given out.
    pub(crate) cpus: BTreeMap<u32, usize>,
    /// Of each NUMA node.
    pub(crate) zones: BTreeMap<u32, Amounts>,
    pub(crate) others: Devices,
}

impl Usage {
    /// What is taken of a node for a pod that may use what is left of this reservation; none where it uses none.
    pub(crate) fn of(facts: &Facts, node: &Node, within: Option<&Reservation>) -> Self {
        let here = |reservation: &&Reservation| reservation.keeps() && reservation.node.as_deref() == Some(&*node.name);
        let mut usage = Self::default();
        let kept: Vec<&Reservation> = facts.reservations.iter().filter(here).collect();
        let is_owner = |pod: &&Pod| {
            pod.reservation.as_ref().is_some_and(|(_, uid)| kept.iter().any(|reservation| reservation.uid == *uid))
        };
        for pod in facts.on(&node.name).filter(|pod| !is_owner(pod)) {
            usage.add(&pod.request.amounts, &pod.given);
        }
        for reservation in kept {
            let mut owners = Self::default();
            facts.owners(reservation).for_each(|pod| owners.add(&pod.request.amounts, &pod.given));
            if within.is_none_or(|within| within.uid != reservation.uid) {
                let mut own = Self::default();
                own.add(&reservation.allocatable, &reservation.given);
                owners = owners.or_more(own);
            }
            usage = usage.and(owners);
        }
        usage
    }

    fn add(&mut self, amounts: &Amounts, parts: &Parts) {
        self.amounts = sum([&self.amounts, amounts]);
        for (all, own) in [(&mut self.gpus, &parts.gpus), (&mut self.zones, &parts.zones)] {
            for (number, amounts) in own {
                let entry = all.entry(*number).or_default();
                *entry = sum([&*entry, amounts]);
            }
        }
        for cpu in &parts.cpus {
            *self.cpus.entry(*cpu).or_default() += 1;
        }
        let others = std::mem::take(&mut self.others);
        self.others = others.joined(parts.others.clone(), |one, other| one + other, |one, other| one + other);
    }

    fn and(self, other: Self) -> Self {
        self.joined(other, |one, other| one + other, |one, other| one + other)
    }

    /// Of each thing what is more.
    fn or_more(self, other: Self) -> Self {
        self.joined(other, Ord::max, Ord::max)
    }

    fn joined(mut self, other: Self, amount: fn(i64, i64) -> i64, count: fn(usize, usize) -> usize) -> Self {
        let join = |into: &mut Amounts, from: Amounts| {
            for (name, value) in from {
                let entry = into.entry(name).or_default();
                *entry = amount(*entry, value);
            }
        };
        join(&mut self.amounts, other.amounts);
        for (into, from) in [(&mut self.gpus, other.gpus), (&mut self.zones, other.zones)] {
            for (number, amounts) in from {
                join(into.entry(number).or_default(), amounts);
            }
        }
        for (cpu, times) in other.cpus {
            let entry = self.cpus.entry(cpu).or_default();
            *entry = count(*entry, times);
        }
        self.others = self.others.joined(other.others, amount, count);
        self
    }
}
