"""What users see of their calls (``explain``, logs, profiles, notebooks), and what checks them.

None of these modules is imported before somebody asks.
"""
