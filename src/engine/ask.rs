//! Asks the model, and judges its answer before anything else sees it: limits, ids, duplicates.

use super::models::{Answer, ModelError, Question};
use super::tools::read_credential;
use serde_json::json;

use super::{News, Place, Progress, World, answer};
use crate::catalogue::{Catalogue, Configuration, ProviderKind, Tool};
use crate::engine::Halt;
use crate::model::{EventKind, Failure, FailureCode, PendingCall, RunState, Turn};
use crate::policy;

/// The longest call id and tool name that are taken from a model, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Asks the model once more. `Ok(None)` is its final answer; the message is in the state either way.
///
/// The inner error is the end of the run; the outer one lets the run go.
pub(super) async fn ask(
    place: &Place<'_>,
    world: &mut dyn World,
    state: &mut RunState,
) -> Result<Result<Option<Turn>, Failure>, Halt> {
    let limit = place.configuration.max_iterations;
    if state.iterations >= limit {
        let detail = format!("the model was asked {limit} times; `max_iterations` allows no more");
        return Ok(Err(Failure::new(FailureCode::MaxIterations, detail)));
    }
    let (size, most) = (state.transcript.bytes(), place.engine.limits.transcript_bytes);
    if size > most {
        return Ok(Err(over("limits.transcript_bytes", size, most)));
    }
    if let Err(failure) = assert_context(place, world).await? {
        return Ok(Err(failure));
    }
    let owner = world.owner().await?;
    let catalogue = &place.at.catalogue;
    // What the owner could not call is not offered.
    let tools: Vec<&Tool> = offered(catalogue, place.configuration)
        .filter(|tool| {
            policy::decide(catalogue, &tool.name, place.configuration, owner.as_ref())
                .denied()
                .is_none()
        })
        .collect();
    let answer = tokio::select! {
        answer = ask_in_turn(place, state, &tools) => answer,
        halt = world.abandoned() => return Err(halt),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(Failure::new(FailureCode::ModelFailed, error.to_string()))),
    };
    state.iterations += 1;
    Ok(take(place, state, answer))
}

/// Nothing that is too secret for the zone of the configuration is sent to its models. Judged at every send, by the
/// catalogue of the claim: a configuration that was pointed elsewhere while its run waited is refused, too.
async fn assert_context(place: &Place<'_>, world: &mut dyn World) -> Result<Result<(), Failure>, Halt> {
    let decision = policy::decide_context(&place.at.catalogue, place.configuration);
    if let Some(blocked) = decision.blocked() {
        let told = News {
            kind: EventKind::ContextBlocked,
            data: json!({
                "configuration": place.configuration.name,
                "context": blocked.context.name,
                "data_class": blocked.context.data_class.as_str(),
                "zone": blocked.zone.as_str(),
                "ceiling": blocked.ceiling().as_str(),
                "catalogue": place.at.version,
            }),
        };
        world
            .save(Progress {
                news: vec![told],
                ..Progress::default()
            })
            .await?;
        return Ok(Err(Failure::new(
            FailureCode::ContextBlocked,
            blocked.to_string(),
        )));
    }
    if let Some(observed) = decision.refused() {
        tracing::warn!(run = %place.run.id, %observed, "sent all the same: trust zones are only observed");
    }
    Ok(Ok(()))
}

fn offered<'c>(catalogue: &'c Catalogue, configuration: &'c Configuration) -> impl Iterator<Item = &'c Tool> {
    catalogue
        .tools
        .values()
        .filter(|tool| catalogue.offers(configuration, &tool.name))
}

/// The configuration's model, then its fallbacks while the one before is not available.
async fn ask_in_turn(place: &Place<'_>, state: &RunState, tools: &[&Tool]) -> Result<Answer, ModelError> {
    let unrouted = |error: policy::Unrouted| ModelError::Unusable {
        reason: error.to_string(),
        model: error.model,
    };
    let (first, fallbacks) = policy::route(&place.at.catalogue, place.configuration).map_err(unrouted)?;
    let mut last = None;
    for (model, provider) in std::iter::once(first).chain(fallbacks) {
        let question = Question {
            run: place.run.id,
            model,
            provider,
            messages: state.transcript.messages(),
            tools,
        };
        let client = match &provider.kind {
            ProviderKind::OpenAi(_) => &place.engine.openai,
            ProviderKind::Anthropic(_) => &place.engine.anthropic,
            ProviderKind::Scripted { .. } => &place.engine.scripted,
        };
        match client.ask(question).await {
            Ok(answer) => return Ok(answer),
            Err(error @ ModelError::Unusable { .. }) => return Err(error),
            Err(error) => {
                tracing::warn!(run = %place.run.id, %error, "a model is not available; trying the next one");
                last = Some(error);
            }
        }
    }
    Err(last.expect("at least the configuration's own model was asked"))
}

fn take(place: &Place<'_>, state: &mut RunState, answer: Answer) -> Result<Option<Turn>, Failure> {
    let limits = &place.engine.limits;
    let message = answer.message;
    let calls = message.calls().map_err(|corrupt| {
        Failure::new(
            FailureCode::ModelFailed,
            format!("the model asked for calls that cannot be read: {corrupt}"),
        )
    })?;
    let size = state.transcript.bytes() + message.as_json().len();
    if size > limits.transcript_bytes {
        return Err(over("limits.transcript_bytes", size, limits.transcript_bytes));
    }
    if calls.len() > limits.calls_per_turn {
        return Err(over("limits.calls_per_turn", calls.len(), limits.calls_per_turn));
    }
    if let Some(call) = calls
        .iter()
        .find(|call| call.arguments.len() > limits.argument_bytes)
    {
        return Err(over(
            "limits.argument_bytes",
            call.arguments.len(),
            limits.argument_bytes,
        ));
    }
    if let Some(call) = calls.iter().find(|call| !is_plain(call)) {
        let detail = format!(
            "call `{}` of `{}` has an id or a name that is empty, longer than {MAX_NAME_BYTES} bytes or holds NUL",
            answer::shown(call.id.as_str()),
            answer::shown(call.tool.as_str())
        );
        return Err(Failure::new(FailureCode::ModelFailed, detail));
    }
    state.transcript.push(message);
    if calls.is_empty() {
        return Ok(None);
    }
    state.turn = state.turn.next();
    let turn = Turn {
        ordinal: state.turn,
        calls,
    };
    if let Some(id) = turn.duplicate_id() {
        let detail = format!(
            "two calls of turn {} have the id `{}`",
            turn.ordinal,
            answer::shown(id.as_str())
        );
        return Err(Failure::new(FailureCode::AmbiguousTurn, detail));
    }
    Ok(Some(turn))
}

fn is_plain(call: &PendingCall) -> bool {
    [call.id.as_str(), call.tool.as_str()]
        .iter()
        .all(|text| !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.contains('\0'))
}

fn over(setting: &str, is: usize, limit: usize) -> Failure {
    Failure::new(
        FailureCode::LimitExceeded,
        format!("{is} is more than `{setting}` = {limit}"),
    )
}

/// The first secret of the configuration's model that is not there, by kind and name.
#[must_use]
pub fn missing_secret(catalogue: &Catalogue, configuration: &Configuration) -> Option<String> {
    let model = catalogue.models.get(&configuration.model)?;
    let key = catalogue
        .providers
        .get(&model.provider)?
        .kind
        .endpoint()?
        .key
        .as_ref()?;
    read_credential(key).err().map(|missing| missing.to_string())
}
