//! crdgen prints the documents that the declared kinds imply.

use std::io::Write;

use koord_resource::{
    declare::Profile,
    document::{custom_resource_definition, yaml},
};

fn main() -> anyhow::Result<()> {
    let definitions: Vec<_> =
        koord_api::KINDS.iter().map(|versions| custom_resource_definition(versions, Profile::Compatible)).collect();
    std::io::stdout().write_all(yaml::stream(&definitions)?.as_bytes())?;
    Ok(())
}
