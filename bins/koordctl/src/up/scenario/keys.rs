//! What a reader presses.

use std::io::{IsTerminal as _, Read as _};

use tokio::sync::mpsc;

/// What a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The next step: space or enter.
    Step,
    /// Stop the time for reading, or let it go on: p.
    Pause,
    /// Enough: q.
    Quit,
}

impl Key {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            b' ' | b'\n' | b'\r' => Some(Key::Step),
            b'p' | b'P' => Some(Key::Pause),
            b'q' | b'Q' => Some(Key::Quit),
            _ => None,
        }
    }
}

/// The keys of standard input. A terminal gives each as it is pressed, until this is dropped.
pub struct Keys {
    pressed: mpsc::Receiver<Key>,
    #[cfg(unix)]
    _terminal: Option<terminal::EachKey>,
}

impl Keys {
    /// Listens where somebody may press something: on a terminal, or when each step waits for enter.
    pub fn listen(by_hand: bool) -> Option<Self> {
        let input = std::io::stdin();
        let on_terminal = input.is_terminal() && std::io::stdout().is_terminal();
        if !on_terminal && !by_hand {
            return None;
        }
        let (press, pressed) = mpsc::channel(16);
        // A thread, which the end of the process ends: a read of standard input cannot be called off.
        std::thread::spawn(move || {
            for byte in std::io::stdin().lock().bytes() {
                let Ok(byte) = byte else { break };
                if Key::of(byte).is_some_and(|key| press.blocking_send(key).is_err()) {
                    break;
                }
            }
        });
        Some(Self {
            pressed,
            #[cfg(unix)]
            _terminal: terminal::EachKey::of(std::io::stdin()),
        })
    }

    /// What is pressed from now on; closed at the end of the input. The terminal stays as it is for as long as `self` lives.
    pub fn take(&mut self) -> mpsc::Receiver<Key> {
        std::mem::replace(&mut self.pressed, mpsc::channel(1).1)
    }
}

#[cfg(unix)]
mod terminal {
    use std::io::Stdin;

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// A terminal that neither waits for enter nor shows what is pressed. Dropped, it is what it was.
    pub(super) struct EachKey {
        input: Stdin,
        before: Termios,
    }

    impl EachKey {
        /// None where the input is no terminal.
        pub(super) fn of(input: Stdin) -> Option<Self> {
            let before = tcgetattr(&input).ok()?;
            let mut each = before.clone();
            // ctrl-C stays a signal.
            each.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(&input, OptionalActions::Now, &each).ok()?;
            Some(Self { input, before })
        }
    }

    impl Drop for EachKey {
        fn drop(&mut self) {
            // A terminal that is gone needs no repair.
            let _ = tcsetattr(&self.input, OptionalActions::Now, &self.before);
        }
    }
}
