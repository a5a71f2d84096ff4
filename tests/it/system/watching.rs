//! What the system says of a run, a decision, a call; most of it awaited.

use super::*;

impl System {
    /// Listens to the events that are published from now on.
    pub async fn listen(&self) -> Listener {
        match &self.embedded {
            Some(broker) => Listener::embedded(broker.subscribe_events()),
            None => Listener::rabbit(&self.topology.events).await,
        }
    }

    pub async fn run(&self, id: RunId) -> Run {
        self.store.run(id).await.unwrap().unwrap()
    }

    pub async fn state(&self, id: RunId) -> SealedState {
        self.store.run_with_state(id).await.unwrap().unwrap().1
    }

    pub async fn decision(&self, id: DecisionId) -> Decision {
        self.store.decision(id).await.unwrap().unwrap()
    }

    /// All events of a run, in order.
    pub async fn events(&self, run: RunId) -> Vec<Event> {
        self.store.events(Some(run), 0, 10_000).await.unwrap()
    }

    /// The kinds of a run's events, in order.
    pub async fn kinds(&self, run: RunId) -> Vec<&'static str> {
        self.events(run)
            .await
            .iter()
            .map(|event| event.event.kind.as_str())
            .collect()
    }

    /// The run, once it has this status.
    pub async fn reaches(&self, id: RunId, status: RunStatus) -> Run {
        eventually(&format!("run {id} is {status}"), || async {
            Some(self.run(id).await).filter(|run| run.status == status)
        })
        .await
    }

    /// What became of a decision, once something has.
    pub async fn concluded(&self, id: DecisionId) -> DecisionStatus {
        eventually("the decision is concluded", || async {
            Some(self.decision(id).await.status).filter(|status| *status != DecisionStatus::Pending)
        })
        .await
    }

    /// The decision was refused with this code, nothing was executed, the run waits as before, and it is told once.
    pub async fn refused(&self, waiting: &Waiting, decision: DecisionId, code: &str) {
        assert_eq!(
            self.concluded(decision).await,
            DecisionStatus::Refused(code.to_owned())
        );
        let run = self.run(waiting.run).await;
        assert_eq!(run.status, RunStatus::WaitingForApproval);
        assert_eq!(run.claimed_by, None);
        assert_eq!(
            self.state(waiting.run).await,
            waiting.sealed,
            "the state is the same, byte for byte"
        );
        let events = self.events(waiting.run).await;
        let told: Vec<_> = events
            .iter()
            .filter(|event| event.event.kind == EventKind::RunRefused)
            .filter(|event| event.event.data["decision_id"] == json!(decision))
            .collect();
        assert_eq!(told.len(), 1, "told once");
        assert_eq!(told[0].event.data["code"], json!(code));
        assert_eq!(
            events.last().unwrap().event.kind,
            EventKind::RunWaiting,
            "the turn is announced again"
        );
        assert!(self.tools.calls().await.is_empty(), "nothing was executed");
        assert!(self.chat.requests().await.is_empty(), "no model was asked");
    }

    /// Everything in the outbox has been published.
    pub async fn published(&self) {
        eventually("the outbox is empty", || async {
            (self.store.outbox_depth().await.unwrap() == 0).then_some(())
        })
        .await;
    }

    /// The tools that were called, in order.
    pub async fn called(&self) -> Vec<String> {
        let name = |body: &str| {
            serde_json::from_str::<Value>(body).unwrap()["tool"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        self.tools
            .calls()
            .await
            .iter()
            .map(|call| name(&call.body))
            .collect()
    }

    /// The messages that the model was given, at each request.
    pub async fn asked(&self) -> Vec<Vec<Value>> {
        let messages = |body: &str| {
            serde_json::from_str::<Value>(body).unwrap()["messages"]
                .as_array()
                .unwrap()
                .clone()
        };
        self.chat
            .requests()
            .await
            .iter()
            .map(|request| messages(&request.body))
            .collect()
    }
}
