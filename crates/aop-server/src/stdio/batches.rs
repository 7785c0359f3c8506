//! Batches: messages that came as one list on one line. What they are answered stands in one list, too, which is written
//! when the last answer is there.

use crate::mcp::message::text;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use std::collections::HashSet;

/// One of them.
#[derive(Default)]
pub(super) struct Batch {
    /// The requests that are still to be answered …
    pub(super) open: HashSet<RequestId>,
    /// … and what is to be said to the others.
    pub(super) answers: Vec<ServerJsonRpcMessage>,
}

impl Batch {
    /// The line that is written for it; none where there was no request.
    fn line(&self) -> Option<String> {
        let answers: Vec<String> = self.answers.iter().map(text).collect();
        (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
    }
}

/// Those that are not answered yet.
#[derive(Default)]
pub(super) struct Batches(Vec<Batch>);

impl Batches {
    /// Keeps a new one; the line to write at once, if none of it waits for an answer.
    pub(super) fn begin(&mut self, batch: Batch) -> Option<String> {
        if batch.open.is_empty() {
            return batch.line();
        }
        self.0.push(batch);
        None
    }

    /// The line to write now that this is to be said.
    pub(super) fn said(&mut self, message: ServerJsonRpcMessage) -> Option<String> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(place) = id.and_then(|id| self.leave(id)) else { return Some(text(&message)) };
        if let Some(batch) = self.0.get_mut(place) {
            batch.answers.push(message);
        }
        self.finished(place)
    }

    /// The line to write now that this request will not be answered any more.
    pub(super) fn cancelled(&mut self, id: &RequestId) -> Option<String> {
        let place = self.leave(id)?;
        self.finished(place)
    }

    /// Whose request it was.
    fn leave(&mut self, id: &RequestId) -> Option<usize> {
        self.0.iter_mut().position(|batch| batch.open.remove(id))
    }

    fn finished(&mut self, place: usize) -> Option<String> {
        if self.0.get(place)?.open.is_empty() { self.0.remove(place).line() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorData, ServerResult};

    fn answer(id: i64) -> ServerJsonRpcMessage {
        JsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))
    }

    fn ids(line: &str) -> Vec<i64> {
        let answers: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
        answers.iter().map(|answer| answer["id"].as_i64().unwrap()).collect()
    }

    #[test]
    fn a_batch_waits_for_its_own_requests_and_for_none_that_is_cancelled() {
        let mut batches = Batches::default();
        let batch = |ids: &[i64]| Batch {
            open: ids.iter().map(|id| RequestId::Number(*id)).collect(),
            answers: vec![],
        };
        assert_eq!(batches.begin(batch(&[1, 2, 3])), None);
        assert_eq!(batches.begin(batch(&[4])), None);
        assert_eq!(batches.said(answer(9)).unwrap(), text(&answer(9)), "it belongs to none");
        assert_eq!(batches.said(answer(3)), None);
        assert_eq!(ids(&batches.said(answer(4)).unwrap()), [4]);
        assert_eq!(batches.cancelled(&RequestId::Number(1)), None);
        let error = JsonRpcMessage::error(ErrorData::internal_error("?", None), Some(RequestId::Number(2)));
        assert_eq!(ids(&batches.said(error).unwrap()), [3, 2]);
        assert_eq!(batches.begin(batch(&[5])), None);
        assert_eq!(batches.cancelled(&RequestId::Number(5)), None, "there is nothing to say");
        assert_eq!(batches.said(answer(5)).unwrap(), text(&answer(5)), "it is no batch any more");
    }
}
