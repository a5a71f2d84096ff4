//! What differs between two catalogues.

use super::super::{Catalogue, Change, diff};
use super::{FULL, full};

#[test]
fn a_change_is_told_with_what_it_was_and_is() {
    let new = FULL
        .replace("effect = \"read_only\"", "effect = \"idempotent_write\"")
        .replace("key_env = \"MODELS_KEY\"", "")
        .replace("fallbacks = [\"spare\"]", "")
        .replace("[models.spare]", "[models.other]");
    let changes = diff(&full(), &Catalogue::parse(&new).unwrap());
    let shown: Vec<_> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "- configurations.support.fallbacks: spare",
            "+ models.other: name = other, provider = script, zone = local",
            "- models.spare: name = spare, provider = script, zone = local",
            "- providers.hosted.key: from variable MODELS_KEY",
            "~ tools.read.effect: read_only → idempotent_write",
        ]
    );
    assert!(matches!(&changes[4], Change::Changed { path, .. } if path == "tools.read.effect"));
}
