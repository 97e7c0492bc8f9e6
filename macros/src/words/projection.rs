//! What `derive(Projection)` takes.

use super::{Table, Word};

/// On the struct.
pub(crate) const PROJECTION: Table = Table {
    name: "projection",
    words: &[
        Word {
            name: "crate",
            takes: "path",
            default: "what Cargo.toml says",
            example: "crate = prelude::koord",
            becomes: "the path by which the code that is made finds `koord-resource`",
        },
        Word {
            name: "runtime",
            takes: "path",
            default: "what Cargo.toml says",
            example: "runtime = prelude::koord::runtime",
            becomes: "the path by which the code that is made finds `koord-runtime`",
        },
        Word {
            name: "kind",
            takes: "type of a kind, or a `ResourceKind`",
            default: "needed",
            example: "kind = ResourceKind::POD",
            becomes: "`Projection::KIND`",
        },
        Word {
            name: "index",
            takes: "type",
            default: "no index",
            example: "index = By<View, Term>",
            becomes: "`Projection::Index`",
        },
    ],
};
