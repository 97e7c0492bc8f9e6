//! What `derive(Validate)` and `derive(Mutate)` take beside the keywords of a schema: functions of values.

use super::{Table, Word};

/// Functions that check values.
pub(crate) const CHECKS: Table = Table {
    name: "checks",
    words: &[
        Word {
            name: "check",
            takes: "path of a function",
            default: "none",
            example: "check(no_spaces)",
            becomes: "a rule of admission: `fn(&T, &Path<'_>, &mut Errors)`; several may stand",
        },
        Word {
            name: "check_update",
            takes: "path of a function",
            default: "none",
            example: "check_update = grows",
            becomes: "a rule of updates: `fn(new: &T, old: &T, &Path<'_>, &mut Errors)`; several may stand",
        },
    ],
};

/// On fields: rules that no definition states.
pub(crate) const FIELD_ADMISSION: Table = Table {
    name: "field_admission",
    words: &[Word {
        name: "admission",
        takes: "list of rules",
        default: "none",
        example: "admission(immutable)",
        becomes: "rules of admission alone; in `default`, the value that `derive(Mutate)` alone gives",
    }],
};

/// On fields: defaults that a literal cannot say.
pub(crate) const COMPUTED: Table = Table {
    name: "computed",
    words: &[Word {
        name: "default_fn",
        takes: "path of a function",
        default: "none",
        example: "default_fn = twice",
        becomes: "the value of an absent `Option<T>`: `fn(&Self) -> T`",
    }],
};

/// Functions that bring values into one form.
pub(crate) const NORMALIZED: Table = Table {
    name: "normalized",
    words: &[Word {
        name: "normalize",
        takes: "path of a function",
        default: "none",
        example: "normalize = trim",
        becomes: "called after the defaults: `fn(&mut T)`; several may stand",
    }],
};
