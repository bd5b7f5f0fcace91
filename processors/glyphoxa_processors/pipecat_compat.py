"""Names of pipecat whose modules have moved between the supported versions."""

from __future__ import annotations

try:
    from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
    from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
    from pipecat.adapters.llm.services.open_ai_adapter import OpenAILLMAdapter
except ImportError:  # before 1.14
    from pipecat.adapters.schemas.function_schema import FunctionSchema
    from pipecat.adapters.schemas.tools_schema import ToolsSchema
    from pipecat.adapters.services.open_ai_adapter import OpenAILLMAdapter

__all__ = ["FunctionSchema", "OpenAILLMAdapter", "ToolsSchema"]
