//! What is a warning, in the words in which it is told, and what the catalogue then says.

use super::super::{DataClass, Enforcement, TrustZone};
use super::{warned, with};

#[test]
fn only_observe_observes_and_anything_odd_is_told() {
    let line = "trust_zone = \"enforce\"";
    assert_eq!(
        with(line, "trust_zone = \" Observe \"")
            .0
            .unwrap()
            .trust_zone_enforcement,
        Enforcement::Observe
    );
    let odd = warned(
        line,
        "trust_zone = \"observed\"",
        "warning: governance.trust_zone is neither `enforce` nor `observe` and counts as `enforce`, \
         line 3, column 1: did you mean `observe`?",
    );
    assert_eq!(odd.trust_zone_enforcement, Enforcement::Enforce);
}

#[test]
fn what_is_unknown_counts_as_the_worst_and_is_told() {
    let catalogue = warned(
        "data_class = \"internal\"",
        "data_class = \"Internal\"",
        "warning: tools.read.data_class is no known data class and counts as `secret`, line 44, column 1: \
         did you mean `internal`?",
    );
    assert_eq!(
        catalogue.tool(&"read".into()).unwrap().data_class,
        DataClass::Secret
    );
    let catalogue = warned(
        "zone = \"local\"",
        "zone = \"lokal\"",
        "warning: models.spare.zone is no known zone and counts as `external_global`, line 24, column 1: \
         did you mean `local`?",
    );
    assert_eq!(catalogue.models["spare"].zone, TrustZone::ExternalGlobal);
}

#[test]
fn what_was_hardly_meant_is_told() {
    for (line, other, expected) in [
        (
            "tools = [\"read\", \"refund\"]",
            "tools = [\"refund\"]",
            "tools.read is in no toolset, line 40, column 8",
        ),
        (
            "fallbacks = [\"spare\"]",
            "",
            "models.spare is asked by no configuration, line 22, column 9",
        ),
        (
            "toolsets = [\"ledger\"]",
            "",
            "configurations.support has no toolset: its runs can call no tool, line 26, column 17",
        ),
        (
            "toolsets = [\"ledger\"]",
            "",
            "toolsets.ledger is offered by no configuration, line 37, column 11",
        ),
        (
            "zone = \"private_hosted\"",
            "zone = \"external_region\"",
            "configurations.support offers `refund`, whose calls will be refused: its data is restricted, and at \
             most confidential may reach external_region, line 26, column 17",
        ),
        (
            "data_class = \"internal\"",
            "data_class = \"internal\"\nparameters = {}",
            "tools.read.parameters has no `type = \"object\"`: many providers refuse such a schema, line 45, column 1",
        ),
    ] {
        warned(line, other, &format!("warning: {expected}"));
    }
}
