//! When the next step comes: after some time for reading, or when the reader wants it.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};

use super::keys::Key;

/// Decides when to go on.
pub struct Pacing {
    keys: Option<mpsc::Receiver<Key>>,
    /// Whether each step waits for a key.
    by_hand: bool,
    paused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Step,
    Quit,
}

impl Pacing {
    /// Listens to these keys, if there are any.
    pub fn new(keys: Option<mpsc::Receiver<Key>>, by_hand: bool) -> Self {
        Self { keys, by_hand, paused: false }
    }

    /// Whether the reader has to press a key before anything more happens.
    pub fn waits(&self) -> bool {
        self.by_hand || self.paused
    }

    /// Gives the reader this long, or as long as the reader wants. `paused` is called when the reader pauses and resumes.
    pub async fn linger(&mut self, reading: Duration, paused: impl Fn(bool)) -> Next {
        let mut left = reading;
        loop {
            let begin = Instant::now();
            let waits = self.waits();
            let key = tokio::select! {
                biased;
                key = press(&mut self.keys) => key,
                () = tokio::time::sleep(left), if !waits => return Next::Step,
            };
            if !waits {
                left = left.saturating_sub(begin.elapsed());
            }
            match key {
                Some(Key::Step) => return Next::Step,
                Some(Key::Pause) => {
                    self.paused = !self.paused;
                    paused(self.paused);
                }
                Some(Key::Quit) => return Next::Quit,
                // Nobody will ever press anything again.
                None if self.by_hand => return Next::Quit,
                None => (self.keys, self.paused) = (None, false),
            }
        }
    }

    /// Waits until the reader has enough, while a step is under way. Pausing then holds from its end on.
    pub async fn enough(&mut self) {
        loop {
            match press(&mut self.keys).await {
                Some(Key::Quit) => return,
                Some(Key::Pause) => self.paused = !self.paused,
                Some(Key::Step) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// The next key; none at the end of the input, and never where nobody listens.
async fn press(keys: &mut Option<mpsc::Receiver<Key>>) -> Option<Key> {
    match keys {
        Some(keys) => keys.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Duration = Duration::from_secs(20);

    /// When the next step comes, with keys pressed at these seconds.
    async fn next(by_hand: bool, presses: &[(u64, Key)]) -> (Next, u64) {
        let (press, keys) = mpsc::channel(16);
        let presses = presses.to_vec();
        let mut pacing = Pacing::new(Some(keys), by_hand);
        let begin = Instant::now();
        let presser = tokio::spawn(async move {
            for (second, key) in presses {
                tokio::time::sleep_until(begin + Duration::from_secs(second)).await;
                press.send(key).await.unwrap();
            }
            press.closed().await;
        });
        let next = pacing.linger(READING, |_| {}).await;
        presser.abort();
        (next, begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_comes_after_the_time_for_reading_or_with_a_key() {
        assert_eq!(next(false, &[]).await, (Next::Step, 20));
        assert_eq!(next(false, &[(3, Key::Step)]).await, (Next::Step, 3));
        assert_eq!(next(false, &[(4, Key::Quit)]).await, (Next::Quit, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_does_not_count_as_reading() {
        assert_eq!(next(false, &[(5, Key::Pause), (1000, Key::Pause)]).await, (Next::Step, 1015));
        assert_eq!(next(false, &[(5, Key::Pause), (1000, Key::Step)]).await, (Next::Step, 1000));
    }

    #[tokio::test(start_paused = true)]
    async fn by_hand_nothing_happens_without_a_key() {
        assert_eq!(next(true, &[(5000, Key::Step)]).await, (Next::Step, 5000));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_input_ends_what_is_done_by_hand_and_nothing_else() {
        let mut closed = Pacing::new(Some(mpsc::channel(1).1), true);
        assert_eq!(closed.linger(READING, |_| {}).await, Next::Quit);
        let mut closed = Pacing::new(Some(mpsc::channel(1).1), false);
        assert_eq!(closed.linger(READING, |_| {}).await, Next::Step);
    }
}
