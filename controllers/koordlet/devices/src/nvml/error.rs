//! Why NVIDIA's library gives no answer, and what helps.

use std::fmt;

/// A call that failed, or a library that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    /// The library is not there, or the loader refuses it.
    #[error("NVIDIA's library cannot be loaded: {reason}")]
    Load {
        /// The loader's words, with the name of the library.
        reason: String,
    },
    /// This program cannot load libraries.
    #[error("NVIDIA's library cannot be loaded: this program is linked statically")]
    Static,
    /// The library is of a driver that lacks a function.
    #[error("NVIDIA's library has no function {function}")]
    NoFunction {
        /// The function.
        function: &'static str,
    },
    /// A function failed.
    #[error("{function}: {code}")]
    Call {
        /// The function.
        function: &'static str,
        /// What it returned.
        code: ReturnCode,
    },
}

/// What a function of the library returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReturnCode(pub u32);

// === impl ReturnCode ===

impl ReturnCode {
    pub const SUCCESS: Self = Self(0);
    pub const NOT_SUPPORTED: Self = Self(3);
    pub const NO_PERMISSION: Self = Self(4);
    pub const NOT_FOUND: Self = Self(6);
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    pub const TIMEOUT: Self = Self(10);
    pub const FUNCTION_NOT_FOUND: Self = Self(13);
    pub const GPU_IS_LOST: Self = Self(15);
    pub const RESET_REQUIRED: Self = Self(16);
    pub const LIBRARY_VERSION_MISMATCH: Self = Self(18);

    fn meaning(self) -> &'static str {
        match self.0 {
            0 => "success",
            1 => "the library is not initialized",
            2 => "an argument is invalid",
            3 => "not supported by this GPU",
            4 => "no permission",
            6 => "nothing found",
            7 => "the buffer is too small",
            8 => "the GPU has no power",
            9 => "the driver is not loaded",
            10 => "no event within the time",
            11 => "the kernel does not get interrupts of the GPU",
            12 => "a library is missing",
            13 => "the driver has no such function",
            14 => "the infoROM is corrupted",
            15 => "the GPU has fallen off the bus or is otherwise lost",
            16 => "the GPU needs a reset",
            17 => "the operating system has blocked the call",
            18 => "driver and library are of different versions",
            19 => "the GPU is in use",
            20 => "out of memory",
            21 => "no data",
            25 => "an argument is of another version",
            999 => "an unknown error of the driver",
            _ => "an error",
        }
    }
}

impl fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.meaning(), self.0)
    }
}

impl fmt::Debug for ReturnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl NvmlError ===

impl NvmlError {
    /// What the function returned, when it was called.
    pub fn code(&self) -> Option<ReturnCode> {
        match self {
            Self::Call { code, .. } => Some(*code),
            Self::NoFunction { .. } => Some(ReturnCode::FUNCTION_NOT_FOUND),
            Self::Load { .. } | Self::Static => None,
        }
    }

    /// One word for the condition of a GPU.
    pub fn reason(&self) -> &'static str {
        match self.code() {
            Some(ReturnCode::GPU_IS_LOST) => "DeviceLost",
            Some(ReturnCode::RESET_REQUIRED) => "ResetRequired",
            Some(_) => "DeviceQueryFailed",
            None => "DriverUnavailable",
        }
    }

    /// What makes it work.
    pub fn remedy(&self) -> &'static str {
        const RESTART: &str =
            "see the kernel's log for NVRM and Xid; drain the node and reset the GPU, or restart the machine";
        match self {
            Self::Load { .. } => {
                "install NVIDIA's driver on the node, and mount its library and /dev/nvidia* into the agent (the NVIDIA container runtime does); on a node \
                 without such GPUs turn the gate Accelerators off"
            }
            Self::Static => "run the build of the agent that is linked with glibc",
            Self::NoFunction { .. } => "install a newer driver",
            Self::Call { code, .. } => match *code {
                ReturnCode::DRIVER_NOT_LOADED => "load the kernel module: modprobe nvidia",
                ReturnCode::NO_PERMISSION => "let the agent open /dev/nvidia*",
                ReturnCode::LIBRARY_VERSION_MISMATCH => {
                    "load the kernel module of the installed driver: restart the machine, or stop all users of GPUs and load the module anew"
                }
                ReturnCode::NOT_SUPPORTED => "nothing: this kind of GPU does not have it",
                ReturnCode::FUNCTION_NOT_FOUND => "install a newer driver",
                _ => RESTART,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_function_and_what_helps() {
        let call = |code| NvmlError::Call { function: "nvmlInit_v2", code };
        for (error, text, reason, remedy) in [
            (
                call(ReturnCode::DRIVER_NOT_LOADED),
                "nvmlInit_v2: the driver is not loaded (code 9)",
                "DeviceQueryFailed",
                "modprobe",
            ),
            (
                call(ReturnCode::GPU_IS_LOST),
                "nvmlInit_v2: the GPU has fallen off the bus or is otherwise lost (code 15)",
                "DeviceLost",
                "drain the node",
            ),
            (call(ReturnCode(77)), "nvmlInit_v2: an error (code 77)", "DeviceQueryFailed", "kernel's log"),
            (
                NvmlError::NoFunction { function: "f" },
                "NVIDIA's library has no function f",
                "DeviceQueryFailed",
                "newer driver",
            ),
            (
                NvmlError::Static,
                "NVIDIA's library cannot be loaded: this program is linked statically",
                "DriverUnavailable",
                "glibc",
            ),
        ] {
            assert_eq!((error.to_string().as_str(), error.reason()), (text, reason));
            assert!(error.remedy().contains(remedy), "{error}: {}", error.remedy());
        }
    }
}
