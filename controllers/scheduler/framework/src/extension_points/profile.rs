//! A scheduling profile: plugins, and their order at each extension point.

use std::sync::Arc;

use super::{Plugin, Registration};
use crate::PluginSet;

/// The plugins by which the pods of one scheduler name are placed, in their order.
#[derive(Clone, Default)]
pub struct Profile {
    /// The name that pods give.
    pub scheduler: Arc<str>,
    pub plugins: Vec<Registration>,
    /// Indexes of BeforePreFilter and PreFilter plugins, and of filters that may name the only nodes, in order.
    pub admits: Vec<u8>,
    /// Indexes of Filter plugins, in order.
    pub filters: Vec<u8>,
    /// Indexes of Score plugins, with their weights.
    pub scores: Vec<(u8, i64)>,
    /// Indexes of PostFilter plugins, in order.
    pub post_filters: Vec<u8>,
    /// Indexes of Reserve plugins, in order.
    pub reserves: Vec<u8>,
    /// Indexes of Permit plugins, in order.
    pub permits: Vec<u8>,
    /// Indexes of PreBind plugins, in order.
    pub pre_binds: Vec<u8>,
    /// How many nodes that take a pod are scored, in percent of all, and at least 100; `None` where all are (`percentageOfNodesToScore`).
    pub sampled_percent: Option<u8>,
}

/// Why a plugin cannot be added to a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The profile has a plugin of this name.
    #[error("there are two plugins {0}")]
    Twice(&'static str),
    /// The profile has as many plugins as it can have.
    #[error("there is no room for plugin {name}: a profile has {max} plugins at most", name = .0, max = PluginSet::PLUGINS_MAX)]
    TooMany(&'static str),
}

impl Profile {
    /// A profile that calls all plugins in their order, except at Filter, Score and PostFilter, for which it names none.
    pub fn of(scheduler: &str, plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let plugins: Vec<Registration> = plugins.into_iter().map(Plugin::register).collect();
        let all: Vec<u8> = (0..).zip(&plugins).map(|(index, _)| index).collect();
        let (admits, reserves, permits) = (all.clone(), all.clone(), all.clone());
        Self { scheduler: scheduler.into(), plugins, admits, reserves, permits, pre_binds: all, ..Self::default() }
    }

    /// Adds a plugin, which is called after all others at each extension point that it implements. Its scores have this weight; with 0 it does not
    /// compare nodes.
    pub fn add(&mut self, plugin: Registration, weight: i64) -> Result<(), AddError> {
        let name = plugin.name();
        if self.plugins.iter().any(|known| known.name() == name) {
            return Err(AddError::Twice(name));
        }
        let index = u8::try_from(self.plugins.len()).ok().filter(|index| *index < PluginSet::PLUGINS_MAX);
        let index = index.ok_or(AddError::TooMany(name))?;
        // A filter may name the only nodes, which is a part of PreFilter.
        let is_admitting = plugin.before_pre_filter.is_some() || plugin.pre_filter.is_some() || plugin.filter.is_some();
        for (indexes, is_implemented) in [
            (&mut self.admits, is_admitting),
            (&mut self.filters, plugin.filter.is_some()),
            (&mut self.post_filters, plugin.post_filter.is_some()),
            (&mut self.reserves, plugin.reserve.is_some()),
            (&mut self.permits, plugin.permit.is_some()),
            (&mut self.pre_binds, plugin.pre_bind.is_some()),
        ] {
            indexes.extend(is_implemented.then_some(index));
        }
        self.scores.extend((weight > 0 && plugin.score.is_some()).then_some((index, weight)));
        self.plugins.push(plugin);
        Ok(())
    }

    /// The plugins of these indexes that implement an extension point, with the indexes.
    pub fn at<'p, P: ?Sized + 'p>(
        &'p self,
        indexes: &'p [u8],
        point: impl Fn(&'p Registration) -> &'p Option<Arc<P>>,
    ) -> impl DoubleEndedIterator<Item = (u8, &'p Registration, &'p P)> {
        indexes.iter().filter_map(move |index| {
            let plugin = self.plugins.get(usize::from(*index))?;
            Some((*index, plugin, point(plugin).as_deref()?))
        })
    }

    /// What implements an extension point, in the order of plugins.
    pub fn each<'p, P: ?Sized + 'p>(
        &'p self,
        point: impl Fn(&'p Registration) -> &'p Option<Arc<P>>,
    ) -> impl Iterator<Item = &'p P> {
        Registration::each(&self.plugins, point)
    }
}
