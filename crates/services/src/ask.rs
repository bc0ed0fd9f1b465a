//! How is a running component asked? Whoever asks puts a question into a short queue; the task that owns what is known takes it
//! from there between two steps of its own work, so that an answer is about one moment.

use std::fmt;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Questions that may wait.
const WAITING: usize = 16;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody wants to know.
#[derive(Debug)]
pub struct Question<Q, A> {
    pub about: Q,
    answer: oneshot::Sender<Result<A, Unanswered>>,
}

impl<Q, A> Question<Q, A> {
    /// Says it; who asked may have gone.
    pub fn answer(self, answer: A) {
        let _ = self.answer.send(Ok(answer));
    }

    /// Nothing can be said before everything is read: what is known so far would not be true.
    pub fn too_early(self) {
        let _ = self.answer.send(Err(Unanswered::TooEarly));
    }
}

/// Where a running component is asked; clones ask the same one.
#[derive(Debug)]
pub struct Asker<Q, A>(mpsc::Sender<Question<Q, A>>);

impl<Q, A> Clone for Asker<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Where it hears of that.
#[derive(Debug)]
pub struct Asked<Q, A>(mpsc::Receiver<Question<Q, A>>);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    TooMany,
    TooEarly,
    Silence,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many questions at once; ask again",
            Self::TooEarly => "not everything is read yet; ask again",
            Self::Silence => "nobody answers",
        })
    }
}

impl std::error::Error for Unanswered {}

/// Both ends.
#[must_use]
pub fn channel<Q, A>() -> (Asker<Q, A>, Asked<Q, A>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Asker(sender), Asked(receiver))
}

impl<Q, A> Asker<Q, A> {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When too many ask at once, not everything is read yet, or nobody answers.
    pub async fn ask(&self, about: Q) -> Result<A, Unanswered> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Question { about, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unanswered::TooMany,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Silence,
        })?;
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            _ => Err(Unanswered::Silence),
        }
    }
}

/// Nobody asks.
impl<Q, A> Default for Asked<Q, A> {
    fn default() -> Self {
        channel().1
    }
}

impl<Q, A> Asked<Q, A> {
    /// The next question; never, if nobody can ask.
    pub async fn next(&mut self) -> Question<Q, A> {
        match self.0.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_is_answered_by_whoever_hears_of_it() {
        let (asker, mut questions) = channel::<u32, u32>();
        let component = tokio::spawn(async move {
            let question = questions.next().await;
            let about = question.about;
            question.answer(about + 1);
        });
        assert_eq!(asker.ask(41).await, Ok(42));
        component.await.unwrap();
        assert_eq!(asker.ask(41).await, Err(Unanswered::Silence), "it is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_and_no_more_wait_than_there_is_room_for() {
        let (asker, mut questions) = channel::<usize, ()>();
        let waiting: Vec<_> = (0..WAITING)
            .map(|number| {
                let asker = asker.clone();
                tokio::spawn(async move { asker.ask(number).await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(asker.ask(WAITING).await, Err(Unanswered::TooMany));
        for answer in waiting {
            assert_eq!(answer.await.unwrap(), Err(Unanswered::Silence));
        }
        // Who hears of it later finds that nobody minds.
        let late = questions.next().await;
        assert_eq!(late.about, 0);
        late.answer(());
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_can_ask_no_question_comes() {
        let mut asked = Asked::<(), ()>::default();
        assert!(timeout(PATIENCE, asked.next()).await.is_err());
    }
}
