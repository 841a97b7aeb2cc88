"""The names of transformers that this project uses, and bases of classes of its frameworks, for pyright.

transformers' own __init__.py imports every one of its models for type checkers: 2,500 files, 15 s of CPU in each check.
"""

from transformers.cache_utils import DynamicCache as DynamicCache
from transformers.configuration_utils import PretrainedConfig as PretrainedConfig
from transformers.generation import LogitsProcessor as LogitsProcessor
from transformers.generation import LogitsProcessorList as LogitsProcessorList
from transformers.generation.configuration_utils import GenerationConfig as GenerationConfig
from transformers.modeling_utils import PreTrainedModel as PreTrainedModel
from transformers.models.auto import AutoConfig as AutoConfig
from transformers.models.auto import AutoModelForCausalLM as AutoModelForCausalLM
from transformers.models.auto import AutoModelForTokenClassification as AutoModelForTokenClassification
from transformers.models.auto import AutoProcessor as AutoProcessor
from transformers.models.auto import AutoTokenizer as AutoTokenizer
from transformers.models.qwen2_vl import Qwen2VLConfig as Qwen2VLConfig
from transformers.models.qwen2_vl import Qwen2VLForConditionalGeneration as Qwen2VLForConditionalGeneration
from transformers.models.qwen3 import Qwen3Config as Qwen3Config
from transformers.models.qwen3 import Qwen3ForCausalLM as Qwen3ForCausalLM
from transformers.optimization import get_scheduler as get_scheduler
from transformers.processing_utils import ProcessorMixin as ProcessorMixin
from transformers.tokenization_utils_base import PreTrainedTokenizerBase as PreTrainedTokenizerBase
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast as PreTrainedTokenizerFast
from transformers.trainer import Trainer as Trainer
from transformers.trainer_callback import PrinterCallback as PrinterCallback
from transformers.trainer_callback import ProgressCallback as ProgressCallback
from transformers.trainer_callback import TrainerCallback as TrainerCallback
from transformers.trainer_callback import TrainerControl as TrainerControl
from transformers.trainer_callback import TrainerState as TrainerState
from transformers.training_args import TrainingArguments as TrainingArguments
