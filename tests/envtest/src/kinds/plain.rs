//! Kinds whose only own rules are which half a request writes and when the generation moves.

use crate::{
    names::NameRule,
    strategy::{Generation, Strategy},
};

/// A kind without further rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) status: bool,
    pub(super) generation: Generation,
    pub(super) returns_deleted: bool,
    pub(super) creates_on_update: bool,
    pub(super) name_rule: NameRule,
}

impl Default for Simple {
    fn default() -> Self {
        Self {
            status: false,
            generation: Generation::Untracked,
            returns_deleted: false,
            creates_on_update: false,
            name_rule: NameRule::Subdomain,
        }
    }
}

impl Strategy for Simple {
    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn has_status(&self) -> bool {
        self.status
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn returns_deleted(&self) -> bool {
        self.returns_deleted
    }
}
