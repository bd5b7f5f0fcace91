"""Language models that are asked behind the talk for an answer of a given form.

The correction of names asks so. Extraction, summaries and the judgement of what is worth remembering will.
"""
