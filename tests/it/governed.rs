//! What a configuration may be given and who may use it, judged by what holds when a run goes on: the model is not
//! asked, nothing is called, and the timeline says why.

use std::sync::Arc;

use countersign::catalogue::Catalogue;
use countersign::gate::{Outcome, Waiting, could_release, simulate};
use countersign::identity::resolve;
use countersign::model::{Actor, CallStatus, DecisionStatus, FailureCode, RunStatus, Verdict};
use countersign::store::Store;

use crate::system::{System, on_both};

const WRITE: (&str, &str, &str) = ("c1", "refund", r#"{"payment":"P-1"}"#);

/// The catalogue of the tests in which `support` is given a restricted context; `enforced` as governance says.
async fn with_context(system: &System, zone: &str, governance: &str) {
    let catalogue = system
        .catalogue()
        .replace("zone = \"local\"", &format!("zone = \"{zone}\""))
        .replace(
            "[configurations.support]\n",
            "[configurations.support]\ncontexts = [\"files\"]\n",
        );
    let declared = format!(
        "{catalogue}\n[contexts.files]\ndata_class = \"restricted\"\n[governance]\ntrust_zone = \"{governance}\"\n"
    );
    system.apply_catalogue(&declared).await;
}

on_both! {
    async fn a_context_that_is_too_secret_reaches_no_model(system) {
        with_context(&system, "external_region", "enforce").await;
        let run = system.queued("support", "what is in the file?").await;
        let working = system.start();
        let failed = system.reaches(run, RunStatus::Failed).await;
        let failure = failed.failure.unwrap();
        assert_eq!(failure.code, FailureCode::ContextBlocked);
        assert_eq!(failure.detail, "context `files` is restricted, and at most confidential may reach external_region");
        assert!(system.chat.requests().await.is_empty());
        let kinds = system.kinds(run).await;
        assert_eq!(kinds.iter().filter(|kind| **kind == "context_blocked").count(), 1, "{kinds:?}");
        working.end().await;
    }

    async fn a_configuration_that_was_pointed_elsewhere_is_judged_anew_on_resume(system) {
        with_context(&system, "private_hosted", "enforce").await;
        let waiting = system.waiting("support", &[WRITE]).await;
        with_context(&system, "external_global", "enforce").await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        let failed = system.reaches(waiting.run, RunStatus::Failed).await;
        assert_eq!(failed.failure.unwrap().code, FailureCode::ContextBlocked);
        assert!(system.chat.requests().await.is_empty());
        working.end().await;
    }

    async fn an_observed_context_is_sent(system) {
        with_context(&system, "external_global", " Observe ").await;
        let run = system.queued("support", "what is in the file?").await;
        let working = system.start();
        system.reaches(run, RunStatus::Completed).await;
        assert!(!system.kinds(run).await.contains(&"context_blocked"));
        working.end().await;
    }

    async fn an_owner_who_left_the_group_while_the_run_waited_goes_on_no_more(system) {
        let waiting = system.waiting("support", &[WRITE]).await;
        let grouped = system
            .catalogue()
            .replace("[configurations.support]\n", "[configurations.support]\ngroups = [\"approvers\"]\n");
        system.apply_catalogue(&grouped).await;
        system.decide(&waiting, Verdict::Approve, "user:ada").await;
        let working = system.start();
        let failed = system.reaches(waiting.run, RunStatus::Failed).await;
        assert_eq!(failed.failure.unwrap().code, FailureCode::AccessDenied);
        assert!(system.tools.calls().await.is_empty() && system.chat.requests().await.is_empty());
        let kinds = system.kinds(waiting.run).await;
        assert_eq!(kinds.iter().filter(|kind| **kind == "access_denied").count(), 1, "{kinds:?}");
        assert!(kinds.contains(&"call.finished"), "the fenced write is closed as refused: {kinds:?}");
        working.end().await;
    }

    /// The answer to "who can?" is what then happens, for everybody who is asked and each kind of turn.
    async fn who_can_release_is_who_does(system) {
        let secured = ("c1", "purge", "{}");
        let read = ("c1", "guarded_look", "{}");
        let working = system.start();
        for (configuration, call) in [
            ("support", WRITE), ("support", secured), ("support", read), ("two-eyes", WRITE),
        ] {
            for actor in ["user:ada", "user:gina", "user:olga", "user:paul", "service:sweeper", "service:reader"] {
                let waiting = system.waiting(configuration, &[call]).await;
                let at = countersign::gate::Catalogued {
                    version: 1,
                    catalogue: Arc::new(Catalogue::parse(&system.catalogue()).unwrap()),
                };
                let actor: Actor = actor.parse().unwrap();
                let mut directory: &dyn Store = system.store.as_ref();
                let principal = resolve(&mut directory, &actor).await.unwrap();
                let run = system.run(waiting.run).await;
                let foreseen = could_release(
                    Waiting { run: &run, state: &waiting.sealed, at: &at, missing_secret: None, now: system.clock.now() },
                    &actor,
                    principal.as_ref(),
                );
                let expected = match foreseen {
                    Ok(()) => DecisionStatus::Standing,
                    Err(refusal) => DecisionStatus::Refused(refusal.code().to_owned()),
                };
                let decision = system.decide(&waiting, Verdict::Approve, &actor.to_string()).await;
                assert_eq!(system.concluded(decision).await, expected, "{actor} in {configuration} on {call:?}");
            }
        }
        working.end().await;
    }

    /// What the simulator says of the tool gate is what the engine then does to the owner's call.
    async fn what_is_simulated_is_what_the_engine_does(system) {
        let catalogue = Catalogue::parse(&system.catalogue()).unwrap();
        let working = system.start();
        for tool in ["refund", "tag", "purge", "guarded_look", "nonsense"] {
            for owner in ["user:ada", "user:olga", "user:paul"] {
                let waiting = system.waiting_of(owner, "support", &[("c1", tool, "{}"), ("c2", "tag", "{}")]).await;
                let owner: Actor = owner.parse().unwrap();
                let mut directory: &dyn Store = system.store.as_ref();
                let principal = resolve(&mut directory, &owner).await.unwrap();
                let configuration = &catalogue.configurations["support"];
                let gate = &simulate(&catalogue, configuration, &tool.into(), principal.as_ref()).rows[0];
                system.decide(&waiting, Verdict::Approve, "user:ada").await;
                if tool == "nonsense" {
                    // Nobody could make that call, so nobody may release it.
                    assert_eq!(gate.reason, "not_registered");
                    continue;
                }
                system.reaches(waiting.run, RunStatus::Completed).await;
                let calls = system.store.calls(waiting.run, None).await.unwrap();
                let refused = calls[0].status == CallStatus::Refused;
                assert_eq!(refused, gate.outcome == Outcome::Refused, "{owner} on {tool}: {gate:?}");
            }
        }
        working.end().await;
    }

    async fn an_owner_who_may_not_use_the_configuration_does_not_start(system) {
        let grouped = system
            .catalogue()
            .replace("[configurations.support]\n", "[configurations.support]\ngroups = [\"approvers\"]\n");
        system.apply_catalogue(&grouped).await;
        let run = system.queued("support", "hello").await;
        let working = system.start();
        system.reaches(run, RunStatus::Failed).await;
        assert!(system.kinds(run).await.contains(&"access_denied"));
        working.end().await;
    }
}
