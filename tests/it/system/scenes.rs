//! Runs that wait or are queued, and what is decided about them.

use super::*;

impl System {
    /// A run of olga that waits on turn 7 with these calls: (id, tool, arguments).
    pub async fn waiting(&self, configuration: &str, calls: &[(&str, &str, &str)]) -> Waiting {
        self.waiting_of("user:olga", configuration, calls).await
    }

    /// A waiting run of somebody.
    pub async fn waiting_of(
        &self,
        owner: &str,
        configuration: &str,
        calls: &[(&str, &str, &str)],
    ) -> Waiting {
        let id: RunId = self.clock.new_id().into();
        let owner: Actor = owner.parse().unwrap();
        let transcript = Transcript::new(vec![
            Message::plain("system", "help"),
            Message::plain("user", "please"),
            Message::parse(asks(calls)).unwrap(),
        ]);
        let mut state = RunState::new(id, owner.clone(), transcript);
        state.turn = TurnOrdinal(7);
        state.iterations = 1;
        let digest = state.pending_turn().unwrap().unwrap().digest();
        let now = self.clock.now();
        let run = Run {
            id,
            owner,
            configuration: configuration.to_owned(),
            status: RunStatus::WaitingForApproval,
            turn: state.turn,
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline: Some(now + Duration::from_secs(3_600)),
        };
        let sealed = state.seal();
        let new = NewRun {
            run,
            state: sealed.clone(),
            events: vec![self.event(Some(id), EventKind::RunWaiting)],
        };
        self.store.create_run(&new).await.unwrap();
        Waiting {
            run: id,
            turn: TurnOrdinal(7),
            digest,
            sealed,
        }
    }

    /// The run as it waits on that turn, once it does.
    pub async fn waits_on(&self, id: RunId, turn: u32) -> Waiting {
        let turn = TurnOrdinal(turn);
        let run = eventually(&format!("run {id} waits on turn {turn}"), || async {
            let waits = |run: &Run| run.status == RunStatus::WaitingForApproval && run.turn == turn;
            Some(self.run(id).await).filter(waits)
        })
        .await;
        let sealed = self.state(id).await;
        let state = RunState::open(&sealed, id, &run.owner, turn).unwrap();
        Waiting {
            run: id,
            turn,
            digest: state.pending_turn().unwrap().unwrap().digest(),
            sealed,
        }
    }

    /// A queued run of olga with this message.
    pub async fn queued(&self, configuration: &str, input: &str) -> RunId {
        let id: RunId = self.clock.new_id().into();
        let owner: Actor = "user:olga".parse().unwrap();
        let transcript = Transcript::new(vec![Message::plain("user", input)]);
        let now = self.clock.now();
        let run = Run {
            id,
            owner: owner.clone(),
            configuration: configuration.to_owned(),
            status: RunStatus::Queued,
            turn: TurnOrdinal(0),
            failure: None,
            claimed_by: None,
            epoch: 0,
            requeues: 0,
            created_at: now,
            updated_at: now,
            deadline: None,
        };
        let state = RunState::new(id, owner, transcript).seal();
        let new = NewRun {
            run,
            state,
            events: vec![self.event(Some(id), EventKind::RunQueued)],
        };
        self.store.create_run(&new).await.unwrap();
        id
    }

    /// A decision of a waiting turn, as an authenticated surface writes it.
    pub async fn decide(&self, waiting: &Waiting, verdict: Verdict, actor: &str) -> DecisionId {
        self.decide_so(
            waiting.run,
            Some(waiting.turn),
            Some(waiting.digest.clone()),
            verdict,
            actor,
            None,
        )
        .await
    }

    /// A decision with everything said.
    pub async fn decide_so(
        &self,
        run: RunId,
        turn: Option<TurnOrdinal>,
        digest: Option<TurnDigest>,
        verdict: Verdict,
        actor: &str,
        comment: Option<&str>,
    ) -> DecisionId {
        let decision = Decision {
            id: self.clock.new_id().into(),
            run,
            turn,
            digest,
            verdict,
            actor: actor.parse().unwrap(),
            comment: comment.map(str::to_owned),
            status: DecisionStatus::Pending,
            decided_at: self.clock.now(),
        };
        let event = NewEvent {
            id: EventId::from(decision.id.uuid()),
            actor: Some(decision.actor.clone()),
            data: json!({ "decision_id": decision.id }),
            ..self.event(Some(run), EventKind::DecisionMade)
        };
        self.store.record_decision(&decision, &event).await.unwrap();
        decision.id
    }

    /// A decision is taken back.
    pub async fn revoke(&self, run: RunId, decision: DecisionId) {
        let event = self.event(Some(run), EventKind::DecisionRevoked);
        assert_eq!(self.store.revoke(decision, &event).await.unwrap(), Guarded::Done);
    }

    /// The run is cancelled, or marked to be.
    pub async fn cancel(&self, run: RunId) -> Cancelled {
        let event = self.event(Some(run), EventKind::RunCancelled);
        self.store
            .cancel(run, &"user:olga".parse().unwrap(), &event)
            .await
            .unwrap()
    }
}

/// A run that waits, as it was when it was made.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub run: RunId,
    pub turn: TurnOrdinal,
    pub digest: TurnDigest,
    pub sealed: SealedState,
}

/// The text of an assistant's message that asks for these calls: (id, tool, arguments).
pub fn asks(calls: &[(&str, &str, &str)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(id, tool, arguments)| {
            json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": arguments } })
        })
        .collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls }).to_string()
}
